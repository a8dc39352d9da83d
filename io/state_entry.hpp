#pragma once
#include "core/dtype.hpp"
#include "core/ledger.hpp"
#include "layout/partition.hpp"

#include <cstdint>
#include <string>
#include <vector>

namespace kozero {

/// What a rank holds of a state tensor in one memory: elements `interval` of the flattened tensor `name`.
struct StateEntry {
  std::string name;                // "h.0.attn.q.weight"
  std::string kind;                // "master", "m", "v"; "gradient" of a delayed update
  std::vector<std::int64_t> shape; // of the whole tensor
  Interval interval;               // may be empty
  DType type = DType::f32;
  void* data = nullptr; // of the interval's first element
  Space space = Space::device;
};

} // namespace kozero
