#pragma once
// The one home of nlohmann-json.

#include <nlohmann/json.hpp>

namespace kozero {

/// Objects keep the order in which their fields were given.
using Json = nlohmann::ordered_json;

} // namespace kozero
