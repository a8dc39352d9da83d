// A checkpoint is one state, whoever wrote it and whoever reads it: saved by 1, 2, 3, 4 and 8 ranks at every stage,
// with and without offload and delay, and read by as many in another way.
#include "support/catch.hpp"
#include "support/small_run.hpp"
#include "support/training.hpp"

#include "io/checkpoint_save.hpp"

using namespace kozero;
using namespace kozero::test;
namespace fs = std::filesystem;

namespace {

struct Way {
  std::int64_t stage;
  OffloadConfig offload = {};
};

std::vector<Way> ways() {
  OffloadConfig const half{.optimizer = OffloadTarget::host, .ratio = 0.5};
  OffloadConfig delayed{.optimizer = OffloadTarget::host};
  delayed.delayed_update.start = 2;
  OffloadConfig half_delayed = half;
  half_delayed.delayed_update.start = 2;
  return {{0}, {1, half}, {2, delayed}, {3}, {3, half_delayed}};
}

/// The first `count` ranks of the world; the others are another group, which does nothing.
struct FirstRanks {
  FirstRanks(Ranks& world, int count, Ledger& ledger) : is_in(world.rank() < count) {
    std::vector<int> members;
    for (int rank = is_in ? 0 : count; rank < (is_in ? count : world.size()); ++rank) members.push_back(rank);
    ranks = world.split(members);
    collectives = ranks->make_collectives(ledger);
  }
  Group group() const { return {*ranks, *collectives}; }

  bool is_in;
  std::unique_ptr<Ranks> ranks;
  std::unique_ptr<Collectives> collectives;
};

SmallRunOptions options_of(Way const& way) { return {.stage = way.stage, .offload = way.offload}; }

/// What a checkpoint must lead to.
struct Saved {
  fs::path path;
  std::string hash;    // of the state that was saved
  std::string drained; // once what was pending is applied
};

/// Three updates, saved with one pending where the way delays.
Saved save(Way const& way, Group const& group, fs::path const& folder) {
  SmallRun<float> run(options_of(way), group);
  for (int batch = 0; batch < 3; ++batch) run.step();
  Training& training = run.training();
  training.settle();
  CheckpointInfo info = training.checkpoint_info();
  info.state_hash = training.state_hash();
  fs::create_directories(folder);
  Saved saved{save_checkpoint(folder, info, training.state(), {1}, group.ranks), info.state_hash, {}};
  training.drain();
  saved.drained = training.state_hash();
  return saved;
}

/// restore() compares the state with the hash that the checkpoint says.
void check_load(Way const& way, Group const& group, Saved const& saved) {
  SmallRun<float> run(options_of(way), group);
  CHECK(run.training().restore(saved.path).state_hash == saved.hash);
  run.training().drain();
  CHECK(run.training().state_hash() == saved.drained);
}

} // namespace

TEST_CASE_METHOD(World, "what any ranks save in any way any others read in any way") { // CASES 15
  SharedFolder const folder(world.ranks);
  auto const all = ways();
  for (int const savers : {1, 2, 3, 4, 8}) {
    std::vector<Saved> saved(all.size());
    FirstRanks const first(world.ranks, savers, ledger);
    for (std::size_t way = 0; way < all.size(); ++way) {
      if (first.is_in) saved[way] = save(all[way], first.group(), folder.file(fmt::format("{} by {}", way, savers)));
    }
    for (Saved& one : saved) { // those who did not save it are told
      std::string path = one.path.string();
      for (std::string* text : {&path, &one.hash, &one.drained}) world.ranks.broadcast(*text, 0);
      one.path = path;
    }
    for (int const readers : {1, 2, 3, 4, 8}) {
      FirstRanks const second(world.ranks, readers, ledger);
      for (std::size_t way = 0; way < all.size(); ++way) {
        auto const other = (way + static_cast<std::size_t>(savers + readers)) % all.size();
        INFO("way " << way << " by " << savers << " ranks, read in way " << other << " by " << readers);
        if (second.is_in) check_load(all[other], second.group(), saved[way]);
      }
    }
  }
}
