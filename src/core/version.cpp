#include "core/version.hpp"

namespace kozero {

std::string version() { return KOZERO_VERSION; }

} // namespace kozero
