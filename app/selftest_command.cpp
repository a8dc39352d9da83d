#include "app/commands.hpp"

#include "app/job.hpp"
#include "comm/process_grid.hpp"
#include "core/error.hpp"
#include "core/log.hpp"
#include "model/families.hpp"
#include "verify/selftest.hpp"

namespace kozero {

int run_selftest(SelftestArguments const& arguments) {
  Ledger ledger;
  auto const ranks = make_world_ranks();
  Job const job = open_job(read_deck_of_job(arguments.deck, arguments.overrides, *ranks), *ranks, ledger);
  ProcessGrid const grid(*ranks, job.deck.config.parallel, ledger);
  for (auto const& warning : job.deck.warnings) log::warn("warning: {}", warning);
  log::info("selftest: {} parameters, {} updates a combination, batches of {} windows ({} a micro-batch x {} "
            "accumulated x {} ranks)",
            parameter_count(architecture_of(job.deck.config.model)->layout()), arguments.updates, job.batch.global(),
            job.batch.micro, job.batch.accumulate, job.batch.ranks);
  SelftestReport const report =
      selftest({job.deck.config, job.corpus, job.batch, arguments.updates}, grid.state(), ledger);
  if (ranks->rank() == 0) fmt::print("{}", report.text);
  return report.passed ? exit_done : exit_failed;
}

} // namespace kozero
