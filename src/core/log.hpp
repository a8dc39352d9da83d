#pragma once
// What the program says to a person: one line each on standard error, from rank 0 unless something is wrong.

#include <spdlog/spdlog.h>

#include <string_view>

namespace kozero::log {

enum class Voice { speaks, silent };

/// Called once at the start. Rank 0 speaks; silent ranks only say errors.
void start(Voice voice);

template <class... Args>
void info(fmt::format_string<Args...> text, Args&&... args) {
  spdlog::info(text, std::forward<Args>(args)...);
}
template <class... Args>
void warn(fmt::format_string<Args...> text, Args&&... args) {
  spdlog::warn(text, std::forward<Args>(args)...);
}
template <class... Args>
void error(fmt::format_string<Args...> text, Args&&... args) {
  spdlog::error(text, std::forward<Args>(args)...);
}

} // namespace kozero::log
