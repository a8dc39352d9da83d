#pragma once
#include <string>

namespace kozero {

/// Of kozero: "0.1.0".
std::string version();

} // namespace kozero
