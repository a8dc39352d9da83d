#pragma once
#include "config/config.hpp"
#include "core/dtype.hpp"

namespace kozero {

/// The element type that a word of precision.compute means.
constexpr DType dtype_of_compute(ComputeType compute) {
  switch (compute) {
  case ComputeType::fp32: return DType::f32;
  case ComputeType::bf16: return DType::bf16;
  case ComputeType::fp16: return DType::f16;
  }
  return DType::f32;
}

/// work(T()) with T the C++ type that precision.compute means.
template <class Work>
auto with_compute_type(ComputeType compute, Work const& work) {
  return with_float_type(dtype_of_compute(compute), work);
}

} // namespace kozero
