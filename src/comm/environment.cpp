#include "comm/environment.hpp"

#include <charconv>
#include <cstdlib>
#include <string_view>

namespace kozero {

char const* process_environment(char const* name) { return std::getenv(name); }

std::optional<std::int64_t> number_in(EnvironmentLookup const& lookup, char const* name) {
  char const* value = lookup(name);
  if (value == nullptr) return std::nullopt;
  std::string_view const text = value;
  std::int64_t number = 0;
  auto const [end, fault] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (fault != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return number;
}

} // namespace kozero
