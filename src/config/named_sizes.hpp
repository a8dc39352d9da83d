#pragma once
#include <array>
#include <cstdint>
#include <string_view>

namespace kozero {

/// The shapes that model.size names: GPT-2 as published (Radford et al. 2019, table 2).
struct NamedSize {
  std::string_view name;
  std::int64_t layers, heads, width;
  std::int64_t context = 1024;
  std::int64_t vocabulary = 50257;
};

inline constexpr std::array<NamedSize, 4> named_sizes = {{
    {"gpt2-124m", 12, 12, 768},
    {"gpt2-355m", 24, 16, 1024},
    {"gpt2-774m", 36, 20, 1280},
    {"gpt2-1.5b", 48, 25, 1600},
}};

} // namespace kozero
