#include "core/emulated/index.hpp"

#include "core/emulated/arena_state.hpp"
#include "core/error.hpp"

namespace kozero::emulated {

namespace {

std::string who() {
  char const* const label = running().label;
  return label ? fmt::format("'{}'", label) : "host code";
}

} // namespace

void fail_index(std::int64_t index, std::int64_t size, char const* what) {
  throw Error(
      fmt::format("{} takes number {} of {} {} (an index is out of range); correct it", who(), index, size, what));
}

void fail_part(std::int64_t begin, std::int64_t end, std::int64_t size, char const* what) {
  throw Error(fmt::format("{} cuts {} to {} out of {} {} (they are not all there); correct the part", who(), begin, end,
                          size, what));
}

} // namespace kozero::emulated
