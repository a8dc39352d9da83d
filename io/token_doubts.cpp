#include "io/token_doubts.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace kozero {

namespace {

/// The share of zeros among ids first, first + step, …
double zeros(std::span<std::int32_t const> ids, std::size_t first, std::size_t step) {
  std::int64_t count = 0, all = 0;
  for (std::size_t i = first; i < ids.size(); i += step, ++all) count += ids[i] == 0 ? 1 : 0;
  return all == 0 ? 0 : static_cast<double>(count) / static_cast<double>(all);
}

/// The upper halves of wider ids are zeros, but for those of a large vocabulary.
std::string doubt_about_width(std::span<std::int32_t const> sample, std::int64_t width) {
  bool const may_be_64 = width == 4 || zeros(sample, 2, 4) > 0.95;
  return may_be_64 ? "every second id is 0 (ids of 8 bytes, which are not read?); write them as uint16 or uint32"
                   : "every second id is 0 (ids of 4 bytes, read as 2?); set data.format: uint32";
}

} // namespace

std::optional<std::string> doubt_about(std::span<std::int32_t const> sample, std::int64_t width) {
  constexpr double most = 0.95;
  constexpr std::size_t least = 48; // ids that are too few to tell
  double const even = zeros(sample, 0, 2);
  double const odd = zeros(sample, 1, 2);
  double const all = zeros(sample, 0, 1);
  if (sample.size() < least || all < 0.4) {
    bool const binary = width == 1 && sample.size() >= least && all > 0.05;
    if (!binary) return {};
    return fmt::format("{:.0f} % of its bytes are 0 (token ids or UTF-16, read as text?); set data.format", 100 * all);
  }
  if (all == 1) return "all ids that were looked at are 0 (a file that was never filled?)";
  if (width > 1 && odd > most && even < 0.75) return doubt_about_width(sample, width);
  if (width > 1 && even > most && odd < 0.75) return "every second id is 0 (ids of another byte order?)";
  return fmt::format("{:.0f} % of the ids that were looked at are 0 (padding, or ids of another width?)", 100 * all);
}

} // namespace kozero
