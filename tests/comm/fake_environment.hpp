#pragma once
#include "comm/environment.hpp"

#include <map>
#include <string>

namespace kozero::test {

using Environment = std::map<std::string, std::string>;

/// What is looked up in it, which must outlive that.
inline EnvironmentLookup lookup_in(Environment const& environment) {
  return [&](char const* name) -> char const* {
    auto const found = environment.find(name);
    return found == environment.end() ? nullptr : found->second.c_str();
  };
}

} // namespace kozero::test
