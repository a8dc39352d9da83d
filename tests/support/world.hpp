#pragma once
#include "comm/world.hpp"
#include "core/ledger.hpp"

namespace kozero::test {

/// The ranks of a test case: TEST_CASE_METHOD(World, "…") uses `world` and the ledger of its staging memory.
struct World {
  Ledger ledger;
  std::unique_ptr<Communicator> const owner = make_world_communicator(ledger);
  Communicator& world = *owner;
};

} // namespace kozero::test
