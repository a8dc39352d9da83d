#pragma once
#include <string>

namespace kozero {

/// The libraries behind io, for the start-up table: "HDF5 1.10.8, yaml-cpp 0.7.0".
std::string library_versions();

} // namespace kozero
