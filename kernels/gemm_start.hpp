#pragma once
// What stands in the result of a product before the product is added, where the library does not see to it.

#include "core/launch.hpp"
#include "kernels/gemm.hpp"

#include <cstdint>

namespace kozero {

/// to [m,n] = bias [n] (+ from [m,n], where that is kept), rounded to To. `from` may be `to`; `bias` may be null.
template <class To, class From, class T>
void start_gemm_sum(Lane const& lane, std::int64_t m, std::int64_t n, To* to, std::int64_t to_stride, From const* from,
                    std::int64_t from_stride, T const* bias, Into into) {
  bool const keeps = into == Into::accumulate;
  launch(
      lane, "kozero::gemm::start_sum", Range{m * n}, KOKKOS_LAMBDA(std::int64_t index) {
        std::int64_t const i = index / n;
        std::int64_t const j = index % n;
        float const old = keeps ? static_cast<float>(from[i * from_stride + j]) : 0.0f;
        to[i * to_stride + j] = static_cast<To>(bias ? old + static_cast<float>(bias[j]) : old);
      });
}

} // namespace kozero
