#pragma once
#include <cstdint>
#include <string>
#include <vector>

namespace kozero {

/// Where a tensor stood in the checkpoints of an older format.
struct FormerTensor {
  std::string name;
  std::vector<std::int64_t> shape; // of the former tensor
  std::int64_t first = 0;          // its element that is element 0 of today's tensor
  /// transposed: today's element (i,o) of [I,O] is the former element first + o·I + i.
  enum class Order { as_stored, transposed } order = Order::as_stored;
};

} // namespace kozero
