#pragma once
// The letters in which all kernels give shapes. All arrays are row-major; all counts are 64 bit.
//
//   B  windows in a micro-batch        C  width (channels)        V  vocabulary
//   T  tokens in a window              H  heads                   Vp V rounded up to a multiple of 128: the leading
//   N  rows, B*T                       D  head width, C / H          dimension of every logits array
//   L  layers                          F  feed-forward width, 4C

#include <cstdint>

namespace kozero {

constexpr std::int64_t padded_vocabulary(std::int64_t vocabulary) { return (vocabulary + 127) / 128 * 128; }

} // namespace kozero
