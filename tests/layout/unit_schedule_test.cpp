#include "layout/unit_schedule.hpp"
#include "support/catch.hpp"

using namespace kozero;

TEST_CASE("a block is shared when a unit other than its own reads it") {
  auto const own = [](int block) { return UnitUses{{block}, {block}, {block}}; };
  CHECK(shared_blocks({}).empty());
  CHECK(shared_blocks({own(0), own(1), own(2)}) == std::vector<bool>{false, false, false});
  UnitUses const tied{{2, 0}, {2, 0}, {2, 0}};
  CHECK(shared_blocks({own(0), own(1), tied}) == std::vector<bool>{true, false, false});
  UnitUses const early{{0, 2}, {0, 2}, {0, 2}}; // before the block's own unit
  CHECK(shared_blocks({early, own(1), tied}) == std::vector<bool>{true, false, true});
}
