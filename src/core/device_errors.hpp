#pragma once
#include <string>
#include <string_view>

namespace kozero {

/// What a device's error means to people, and what to do: by the name that CUDA gives it, "cudaErrorECCUncorrectable",
/// beside CUDA's own words. Errors of hardware, which drivers log as XID, come out as what they are.
std::string explain_device_error(std::string_view call, std::string_view name, std::string_view words);

} // namespace kozero
