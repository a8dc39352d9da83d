#pragma once
#include <string>

namespace kozero {

/// What the device calls itself: "NVIDIA H200"; on CPU builds the host's vectors, "host, AVX-512".
std::string device_name();

} // namespace kozero
