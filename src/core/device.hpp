#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace kozero {

/// Error where this program was built for an accelerator and finds none here: no driver, one that is too old, or no
/// device that the process may see. To be called before Kokkos comes up, which has no such words.
void require_device();

/// What of the accelerator's maker the program was built with, beside what is here; for people.
struct DevicePart {
  std::string name;
  std::string built_with; // "13.1.0", or "-"
  std::string here;       // "13.1.1", or "not found"
};

/// The accelerator that this process computes on.
struct DeviceIdentity {
  std::string name;    // "NVIDIA H200"
  std::string uuid;    // "GPU-…", as nvidia-smi prints it
  std::string address; // on the PCI bus: "0000:1b:00.0"
  int visible = 1;     // devices that the process may see
};

/// None where the device is the host. Kokkos must be up.
std::optional<DeviceIdentity> device_identity();

/// Bytes of its memory that nobody has, as the driver says; none where the device is the host.
std::optional<std::int64_t> free_device_memory();

/// Device, driver and libraries; none where the device is the host. Neither Kokkos nor a driver is needed.
std::vector<DevicePart> device_parts();

} // namespace kozero
