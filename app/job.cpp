#include "app/job.hpp"

#include "comm/agree.hpp"
#include "comm/launcher.hpp"
#include "config/check.hpp"
#include "core/error.hpp"
#include "core/log.hpp"
#include "io/same_data.hpp"
#include "plan/host_room.hpp"
#include "plan/rank_plan.hpp"

#include <utility>

namespace kozero {

namespace {

void set_limits(MemoryConfig const& memory, Ledger& ledger) {
  if (memory.device_limit_bytes) ledger.set_limit(Space::device, *memory.device_limit_bytes);
  if (memory.host_limit_bytes) ledger.set_limit(Space::host, *memory.host_limit_bytes);
}

/// A limit of the deck's own is what counts where there is one.
void require_host_memory(Config const& config, BatchShape const& batch, Ranks& ranks) {
  auto const lack = lack_of_host_memory(config, batch, ranks);
  if (lack && !config.memory.host_limit_bytes) throw SharedError(*lack, exit_bad_input);
  if (lack) log::warn("warning: {}", *lack);
}

} // namespace

Deck read_deck_of_job(std::string const& path, std::vector<std::string> const& overrides, Ranks& ranks) {
  on_all_ranks(ranks, [&] {
    require_launcher_agrees(ranks.size());
    return true;
  });
  std::string text = on_first_rank(ranks, [&] { return read_text_file(path); });
  ranks.broadcast(text, 0);
  return on_all_ranks(ranks, [&] { return read_deck(text, path, overrides); });
}

Job open_job(Deck deck, Ranks& ranks, Ledger& ledger) {
  Job job{.deck = std::move(deck)};
  Config const& config = job.deck.config;
  set_limits(config.memory, ledger);
  job.batch = on_all_ranks(ranks, [&] {
    check_ranks(config, ranks.size());
    BatchShape const batch = batch_shape(config.batch, ranks.size());
    static_cast<void>(attention_of(config, batch)); // refused here where there is none for the context
    return batch;
  });
  require_host_memory(config, job.batch, ranks);
  job.corpus =
      on_all_ranks(ranks, [&] { return open_corpus(config.data, config.model.vocabulary, config.model.context); });
  require_same_data(job.corpus, ranks);
  return job;
}

} // namespace kozero
