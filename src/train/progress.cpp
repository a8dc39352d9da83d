#include "train/progress.hpp"

#include "core/format.hpp"
#include "core/log.hpp"

#include <fmt/format.h>

#include <cstdlib>
#include <string_view>
#include <unistd.h>

namespace kozero {

namespace {

bool wanted() {
  if (char const* const setting = std::getenv("KOZERO_PROGRESS")) return std::string_view(setting) != "0";
  return isatty(STDERR_FILENO) == 1;
}

} // namespace

Progress::Progress(bool speaks) : speaks_(speaks && wanted()) {}

void Progress::show(Line const& line) {
  auto const now = std::chrono::steady_clock::now();
  bool const due = now - last_ > std::chrono::milliseconds(100) || line.update == line.updates;
  if (!speaks_ || !due) return;
  last_ = now;
  show(fmt::format("update {}/{}  loss {:.4f}  lr {:.2e}  norm {:.2f}  {} tokens/s  {} left", line.update, line.updates,
                   line.loss, line.lr, line.norm, format_count(line.tokens_per_s), format_duration(line.seconds_left)));
}

void Progress::show(std::string const& text) {
  if (!speaks_) return;
  shown_ = true;
  log::show(fmt::format("\r{}\033[K", text));
}

void Progress::clear() {
  if (!shown_) return;
  log::show("\r\033[K");
  shown_ = false;
}

} // namespace kozero
