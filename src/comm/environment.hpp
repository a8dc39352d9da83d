#pragma once
#include <cstdint>
#include <functional>
#include <optional>

namespace kozero {

/// Like std::getenv.
using EnvironmentLookup = std::function<char const*(char const* name)>;

/// This process' environment.
char const* process_environment(char const* name);

/// The variable's whole number; none where it is absent, empty or something else.
std::optional<std::int64_t> number_in(EnvironmentLookup const& lookup, char const* name);

} // namespace kozero
