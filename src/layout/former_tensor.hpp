#pragma once
#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace kozero {

/// Where a tensor of today stood in the files of an older format_version: in a tensor of another name, of which it was
/// a part; or with its two dimensions exchanged. Kind and type are as they were.
struct FormerTensor {
  enum class Order {
    as_stored,  // today's elements, one after the other
    transposed, // today's [in, out] is rows of the former [out, in]
  };

  std::string name;
  std::vector<std::int64_t> shape; // of the whole former tensor
  std::int64_t begin = 0;          // today's first element, in the flattened former tensor
  Order order = Order::as_stored;
};

/// By today's names. A tensor without one stood where it stands today.
using FormerTensors = std::map<std::string, FormerTensor>;

} // namespace kozero
