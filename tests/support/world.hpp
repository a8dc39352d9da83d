#pragma once
#include "comm/process_grid.hpp"
#include "comm/self_collectives.hpp"
#include "comm/self_ranks.hpp"
#include "core/ledger.hpp"

namespace kozero::test {

/// The ranks of a test case: TEST_CASE_METHOD(World, "…") uses `world` and the ledger of its staging memory.
struct World {
  Ledger ledger;
  std::unique_ptr<Ranks> const all = make_world_ranks();
  ProcessGrid const grid{*all, {}, ledger};
  Group const world = grid.world();
};

/// One rank by itself, whatever the others do.
class Alone {
public:
  operator Group() { return {ranks_, collectives_}; }

private:
  SelfRanks ranks_;
  SelfCollectives collectives_;
};

} // namespace kozero::test
