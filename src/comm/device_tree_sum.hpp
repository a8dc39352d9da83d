#pragma once
#include "core/dtype.hpp"
#include "core/lane.hpp"

#include <cstdint>

namespace kozero {

/// Addends of one type in device memory, one a rank: rank r's begins r · distance_bytes after `first`, but that of rank
/// `own` lies at own_place.
struct DeviceAddends {
  void const* first = nullptr;
  std::int64_t distance_bytes = 0;
  int count = 1;
  int own = 0;
  void const* own_place = nullptr;
};

/// out[i] = the sum over ranks, i = 0 … n-1, in the order of tree_sum, by a kernel that the lane gets. `out` may be one
/// of the addends. It has the addends' type; or fp32 where they have 16 bits, for a sum of some ranks' that others are
/// to be added to; or 16 bits where such sums are added and rounded at last.
void device_tree_sum(Lane const& lane, DType in, DeviceAddends const& addends, DType out_type, void* out,
                     std::int64_t n);

} // namespace kozero
