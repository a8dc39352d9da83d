#pragma once
#include "core/launch.hpp"
#include "core/ledger.hpp"

#include <cstdint>

namespace kozero {

/// Device memory with small numbers of both signs, as training has them: products of zeros are faster on some devices.
template <class T>
DeviceBuffer<T> bench_numbers(Ledger& ledger, std::int64_t count) {
  DeviceBuffer<T> buffer(ledger, Category::workspace, "bench", count, DeviceBuffer<T>::Init::none);
  T* const data = buffer.data();
  launch(
      Lane(), "kozero::bench::numbers", Range{count},
      KOKKOS_LAMBDA(std::int64_t i) { data[i] = static_cast<T>(static_cast<float>(i % 17 - 8) * 0.02f + 0.01f); });
  return buffer;
}

} // namespace kozero
