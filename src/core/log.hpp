#pragma once
// What the program says to a person: one line each on standard error, from rank 0 unless something is wrong. Where
// nobody listens any more (a terminal that was closed, a full disk), lines are dropped: output is not worth a run.

#include <spdlog/spdlog.h>

#include <string>

namespace kozero::log {

enum class Voice { speaks, silent };

/// Called once at the start. Rank 0 speaks; silent ranks only say errors.
void start(Voice voice);

void say(spdlog::level::level_enum level, std::string const& line);
/// Writes text to standard error as it is, for what rewrites its line.
void show(std::string const& text);
/// Whether something could not be written so far.
bool lost();

template <class... Args>
void info(fmt::format_string<Args...> text, Args&&... args) {
  say(spdlog::level::info, fmt::format(text, std::forward<Args>(args)...));
}
template <class... Args>
void warn(fmt::format_string<Args...> text, Args&&... args) {
  say(spdlog::level::warn, fmt::format(text, std::forward<Args>(args)...));
}
template <class... Args>
void error(fmt::format_string<Args...> text, Args&&... args) {
  say(spdlog::level::err, fmt::format(text, std::forward<Args>(args)...));
}

} // namespace kozero::log
