#include "core/log.hpp"

#include <spdlog/sinks/stdout_color_sinks.h>

#include <atomic>
#include <cstdio>

namespace kozero::log {

namespace {

std::atomic<bool> something_lost = false;
std::atomic<bool> has_gap = false; // the last that was written is lost, or half of it

/// Standard error is not buffered, so a write that failed shows in its state at once.
void look_for_loss() {
  if (std::ferror(stderr) == 0) return;
  something_lost = has_gap = true;
  std::clearerr(stderr);
}

} // namespace

void start(Voice voice) {
  auto logger = spdlog::get("kozero");
  if (!logger) logger = spdlog::stderr_color_mt("kozero");
  logger->set_pattern("%^%v%$");
  logger->set_level(voice == Voice::speaks ? spdlog::level::info : spdlog::level::err);
  logger->set_error_handler([](std::string const&) { something_lost = true; });
  spdlog::set_default_logger(logger);
}

void say(spdlog::level::level_enum level, std::string const& line) {
  if (has_gap.exchange(false)) {
    spdlog::log(level, "\n(lines are missing here: they could not be written)");
    look_for_loss();
  }
  spdlog::log(level, "{}", line);
  look_for_loss();
}

void show(std::string const& text) {
  std::fputs(text.c_str(), stderr);
  std::fflush(stderr);
  look_for_loss();
}

bool lost() { return something_lost; }

} // namespace kozero::log
