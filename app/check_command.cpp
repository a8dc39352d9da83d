#include "app/commands.hpp"

#include "comm/launcher.hpp"
#include "core/error.hpp"
#include "core/log.hpp"
#include "io/deck.hpp"

#include <fmt/format.h>

namespace kozero {

int run_check(CheckArguments const& arguments) {
  if (launched_process().rank != 0) return exit_done; // once is enough
  if (arguments.reference) {
    fmt::print("{}", deck_reference());
    return exit_done;
  }
  Deck const deck = read_deck(read_text_file(arguments.deck), arguments.deck, arguments.overrides);
  for (auto const& warning : deck.warnings) log::warn("warning: {}", warning);
  fmt::print("{}", deck.resolved_yaml);
  return exit_done;
}

} // namespace kozero
