#include "core/format.hpp"

#include <fmt/format.h>

#include <array>
#include <cmath>
#include <string_view>

namespace kozero {

std::string format_duration(double seconds) {
  std::int64_t const whole = std::llround(seconds);
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

std::string format_rate(double per_second, char const* unit) {
  constexpr std::array<char const*, 6> prefixes = {"", "k", "M", "G", "T", "P"};
  std::size_t step = 0;
  for (; per_second >= 999.5 && step + 1 < prefixes.size(); ++step) per_second /= 1000;
  int const digits = per_second >= 99.95 ? 0 : per_second >= 9.995 ? 1 : 2;
  return fmt::format("{:.{}f} {}{}", per_second, digits, prefixes[step], unit);
}

std::string format_bytes(std::int64_t bytes, ByteUnits units) {
  constexpr std::array<std::string_view, 5> binary = {"B", "KiB", "MiB", "GiB", "TiB"};
  constexpr std::array<std::string_view, 5> decimal = {"B", "kB", "MB", "GB", "TB"};
  double const step = units == ByteUnits::binary ? 1024 : 1000;
  auto const& names = units == ByteUnits::binary ? binary : decimal;
  auto value = static_cast<double>(bytes);
  std::size_t unit = 0;
  for (; std::abs(value) >= step && unit + 1 < names.size(); ++unit) value /= step;
  if (unit == 0) return fmt::format("{} {}", bytes, names[0]);
  int const digits = units == ByteUnits::decimal ? (std::abs(value) < 100 ? 1 : 0) : (unit < 3 ? 1 : 2);
  return fmt::format("{:.{}f} {}", value, digits, names[unit]);
}

} // namespace kozero
