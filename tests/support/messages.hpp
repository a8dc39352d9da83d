#pragma once
// What errors say.

#include "core/error.hpp"

#include <string>

namespace kozero::test {

/// The message of the Error that the call ends with; nothing where it ends well.
template <class Call>
std::string message_of(Call const& call) {
  try {
    call();
  } catch (Error const& error) {
    return error.what();
  }
  return "";
}

inline bool says(std::string const& text, std::string const& words) { return text.find(words) != std::string::npos; }

} // namespace kozero::test
