#pragma once
#include "core/error.hpp"
#include "core/half.hpp"

#include <cstdint>

namespace kozero {

/// The element type of an untyped span, as collectives and checkpoints see it.
enum class DType { f32, bf16, f16, f64, i64, i32, u8 };

constexpr std::int64_t size_of(DType type) {
  switch (type) {
  case DType::f64:
  case DType::i64: return 8;
  case DType::f32:
  case DType::i32: return 4;
  case DType::bf16:
  case DType::f16: return 2;
  case DType::u8: return 1;
  }
  return 0;
}

constexpr char const* name_of(DType type) {
  switch (type) {
  case DType::f64: return "f64";
  case DType::i64: return "i64";
  case DType::f32: return "f32";
  case DType::i32: return "i32";
  case DType::bf16: return "bf16";
  case DType::f16: return "f16";
  case DType::u8: return "u8";
  }
  return "?";
}

template <class T>
inline constexpr DType dtype_of = DType::u8;
template <>
inline constexpr DType dtype_of<float> = DType::f32;
template <>
inline constexpr DType dtype_of<bf16> = DType::bf16;
template <>
inline constexpr DType dtype_of<fp16> = DType::f16;
template <>
inline constexpr DType dtype_of<double> = DType::f64;
template <>
inline constexpr DType dtype_of<std::int64_t> = DType::i64;
template <>
inline constexpr DType dtype_of<std::int32_t> = DType::i32;

/// Whether it is a type that parameters and gradients can have.
constexpr bool is_float(DType type) { return type == DType::f32 || type == DType::bf16 || type == DType::f16; }

/// work(T()) with T the C++ type of a type for which is_float says true.
template <class Work>
auto with_float_type(DType type, Work const& work) {
  switch (type) {
  case DType::f32: return work(float());
  case DType::bf16: return work(bf16());
  case DType::f16: return work(fp16());
  default: break;
  }
  throw Error(
      fmt::format("{} is no type of parameters or gradients (a fault of kozero); please report it", name_of(type)));
}

} // namespace kozero
