#include "train/progress.hpp"

#include <fmt/format.h>

#include <array>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <string_view>
#include <unistd.h>

namespace kozero {

std::string format_duration(double seconds) {
  auto const whole = static_cast<std::int64_t>(seconds + 0.5);
  if (seconds < 10) return fmt::format("{:.1f}s", seconds);
  if (whole < 60) return fmt::format("{}s", whole);
  if (whole < 3600) return fmt::format("{}m {:02}s", whole / 60, whole % 60);
  return fmt::format("{}h {:02}m", whole / 3600, whole / 60 % 60);
}

std::string format_count(double count) {
  if (count >= 1e9) return fmt::format("{:.2f}G", count / 1e9);
  if (count >= 1e6) return fmt::format("{:.2f}M", count / 1e6);
  if (count >= 1e4) return fmt::format("{:.1f}k", count / 1e3);
  return fmt::format("{:.0f}", count);
}

std::string format_bytes(std::int64_t bytes) {
  constexpr std::array<char const*, 5> units = {"B", "KiB", "MiB", "GiB", "TiB"};
  auto value = static_cast<double>(bytes);
  std::size_t unit = 0;
  for (; std::abs(value) >= 1024 && unit + 1 < units.size(); ++unit) value /= 1024;
  return unit == 0 ? fmt::format("{} B", bytes) : fmt::format("{:.{}f} {}", value, unit < 3 ? 1 : 2, units[unit]);
}

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
  fmt::print(stderr, "\r{}\033[K", text);
  std::fflush(stderr);
}

void Progress::clear() {
  if (!shown_) return;
  fmt::print(stderr, "\r\033[K");
  std::fflush(stderr);
  shown_ = false;
}

} // namespace kozero
