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

/// Several sums of as many elements each, by one kernel: the distances from one to the next.
struct SumSeries {
  std::int64_t count = 1;
  std::int64_t addends_bytes = 0; // of `first`
  std::int64_t own_bytes = 0;     // of own_place
  std::int64_t out_bytes = 0;
};

/// out[i] = the sum over ranks, i = 0 … n-1, in the order of tree_sum, by a kernel that the lane gets. `out` may be one
/// of the addends. It has the addends' type; or fp32 where they have 16 bits, for a sum of some ranks' that others are
/// to be added to; or 16 bits where such sums are added and rounded at last. Of a series of several, n is a multiple of
/// 8.
void device_tree_sum(Lane const& lane, DType in, DeviceAddends const& addends, DType out_type, void* out,
                     std::int64_t n, SumSeries const& series = {});

} // namespace kozero
