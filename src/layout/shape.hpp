#pragma once
#include <cstdint>
#include <functional>
#include <numeric>
#include <span>

namespace kozero {

/// The number of elements; 1 of a scalar. For extents that are known to make sense: overflow is not looked for.
inline std::int64_t elements_of(std::span<std::int64_t const> shape) {
  return std::accumulate(shape.begin(), shape.end(), std::int64_t{1}, std::multiplies<>());
}

} // namespace kozero
