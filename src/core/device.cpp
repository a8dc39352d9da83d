// Of programs whose device is the host, and of accelerators that nothing is known of; core/cuda has NVIDIA's.

#include "core/device.hpp"

namespace kozero {

void require_device() {}

std::optional<DeviceIdentity> device_identity() { return std::nullopt; }

std::optional<std::int64_t> free_device_memory() { return std::nullopt; }

std::vector<DevicePart> device_parts() { return {}; }

} // namespace kozero
