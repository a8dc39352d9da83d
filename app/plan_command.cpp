#include "app/commands.hpp"

#include "comm/launcher.hpp"
#include "config/check.hpp"
#include "core/error.hpp"
#include "core/log.hpp"
#include "io/deck.hpp"
#include "plan/run_plan.hpp"

#include <fmt/format.h>

namespace kozero {

int run_plan(PlanArguments const& arguments) {
  LaunchedProcess const process = launched_process();
  if (process.rank != 0) return exit_done; // one message is enough, and the launcher ends with the highest status
  if (process.count > 1) {
    throw InputError(fmt::format("{} started {} processes (a plan is the work of one; its ranks need not be there); "
                                 "start it alone: kozero plan DECK --ranks {}",
                                 process.launcher, process.count, process.count));
  }
  Deck const deck = read_deck(read_text_file(arguments.deck), arguments.deck, arguments.overrides);
  for (auto const& warning : deck.warnings) log::warn("warning: {}", warning);
  check_ranks(deck.config, arguments.ranks);
  PlannedCluster cluster{.ranks_per_host = arguments.ranks_per_host};
  if (arguments.rates) cluster.rates = parse_rates(*arguments.rates);
  PlanRecord const plan = plan_run(deck.config, batch_shape(deck.config.batch, arguments.ranks), cluster);
  fmt::print("{}", arguments.json ? to_json(plan) : plan_text(plan));
  return exit_done;
}

} // namespace kozero
