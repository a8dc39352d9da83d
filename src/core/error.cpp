#include "core/error.hpp"

namespace kozero::detail {

void fail_assertion(char const* condition, char const* file, int line) {
  throw Error(fmt::format("internal error: '{}' does not hold at {}:{} (a fault of kozero, not of the input); "
                          "please report it with the deck",
                          condition, file, line));
}

} // namespace kozero::detail
