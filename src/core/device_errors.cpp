#include "core/device_errors.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

namespace kozero {

namespace {

struct Meaning {
  std::string_view name;
  std::string_view is;
  std::string_view advice;
};

constexpr std::string_view leave_node_out =
    "have the node looked after and leave it out (sbatch --exclude), then go on with --resume auto";

// The numbers of XIDs are those of NVIDIA's page on XID errors.
constexpr std::array<Meaning, 10> meanings = {{
    {"cudaErrorECCUncorrectable",
     "the device's memory has an error that cannot be corrected: ECC, XID 48, 63, 64 or 95", leave_node_out},
    {"cudaErrorContained", "the device's memory has an error that was contained to this process: XID 94",
     "go on with --resume auto; where it comes again, leave the node out"},
    {"cudaErrorNvlinkUncorrectable", "NVLink has an error that cannot be corrected: XID 74", leave_node_out},
    {"cudaErrorHardwareStackError", "a fault of the device's hardware: XID 13", leave_node_out},
    {"cudaErrorDevicesUnavailable", "the device is taken by another process, or is not in a state to compute",
     "see nvidia-smi; where its compute mode is exclusive, start one rank a device"},
    {"cudaErrorDeviceUninitialized", "the device was reset while it was used", leave_node_out},
    {"cudaErrorIllegalAddress", "a kernel touched memory that is not its own: XID 31",
     "go on with --resume auto; where it comes again at another place, leave the node out, else report it"},
    {"cudaErrorLaunchFailure", "a kernel ended in a fault: XID 13, 43 or 45",
     "see dmesg for its XID; go on with --resume auto; where it comes again, leave the node out"},
    {"cudaErrorLaunchTimeout", "the driver ended a kernel that took too long: XID 8",
     "use a device that drives no display"},
    {"cudaErrorSystemNotReady", "the devices are not connected yet: the fabric manager does not run",
     "have nvidia-fabricmanager started on the node"},
}};

} // namespace

std::string explain_device_error(std::string_view call, std::string_view name, std::string_view words) {
  auto const known = std::ranges::find(meanings, name, &Meaning::name);
  if (known == meanings.end()) {
    return fmt::format("{} failed ({}, {}); look at the device and its driver: nvidia-smi, and XIDs in dmesg", call,
                       words, name);
  }
  return fmt::format("{} failed ({}, {}: {}); {}", call, words, name, known->is, known->advice);
}

} // namespace kozero
