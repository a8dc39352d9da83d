#include "optim/loss_scale.hpp"

#include "core/error.hpp"
#include "support/catch.hpp"
#include "support/temporary_folder.hpp"

#include <limits>
#include <vector>

using namespace kozero;
using namespace kozero::test;

namespace {

using Verdict = LossScale::Verdict;
using enum LossScale::Verdict;

enum class Event { clean, overflow };
constexpr Event C = Event::clean;
constexpr Event O = Event::overflow;

/// What happened, and what is true after it.
struct Row {
  Event event;
  Verdict verdict;
  LossScaleState after; // scale, clean updates in a row, overflows since it was last doubled
};

Verdict tell(LossScale& scale, Event event) { return event == C ? scale.clean() : scale.overflow(); }

void replay(LossScale scale, std::vector<Row> const& table) {
  for (std::size_t i = 0; i < table.size(); ++i) {
    INFO("row " << i);
    REQUIRE(tell(scale, table[i].event) == table[i].verdict);
    REQUIRE(scale.state() == table[i].after);
    REQUIRE(scale.value() == table[i].after.scale);
  }
}

// Written by hand from the comment in the header; each row ends in a comment so that it keeps its line.
std::vector<Row> const window_3_hysteresis_2_from_8 = {
    {C, kept, {8, 1, 0}},       //
    {C, kept, {8, 2, 0}},       //
    {C, grown, {16, 0, 0}},     // the third clean one in a row
    {C, kept, {16, 1, 0}},      //
    {C, kept, {16, 2, 0}},      //
    {O, tolerated, {16, 0, 1}}, // one short of the window: the row begins anew
    {C, kept, {16, 1, 1}},      //
    {C, kept, {16, 2, 1}},      //
    {C, grown, {32, 0, 0}},     // doubling forgives
    {O, tolerated, {32, 0, 1}}, //
    {C, kept, {32, 1, 1}},      //
    {O, halved, {16, 0, 2}},    // the second since it was doubled, though not in a row
    {O, halved, {8, 0, 3}},     // and every later one
    {C, kept, {8, 1, 3}},       //
    {C, kept, {8, 2, 3}},       //
    {O, halved, {4, 0, 4}},     // also one short of the window
    {C, kept, {4, 1, 4}},       //
    {C, kept, {4, 2, 4}},       //
    {C, grown, {8, 0, 0}},      // all of that is forgiven
    {O, tolerated, {8, 0, 1}},  //
};

LossScaleConfig const small{.initial = 8, .window = 3, .hysteresis = 2};

} // namespace

TEST_CASE("the loss scale replays a table of events") { replay(LossScale(small), window_3_hysteresis_2_from_8); }

TEST_CASE("a loss scale that sinks is exhausted at 1, and says so each time") {
  LossScale const sinking({.initial = 4, .window = 2, .hysteresis = 1});
  replay(sinking, {
                      {O, halved, {2, 0, 1}},
                      {O, halved, {1, 0, 2}},
                      {O, exhausted, {1, 0, 3}},
                      {O, exhausted, {1, 0, 4}},
                      {C, kept, {1, 1, 4}},
                      {C, grown, {2, 0, 0}},
                      {O, halved, {1, 0, 1}},
                  });
  // What is tolerated comes first, at the floor too.
  replay(LossScale({.initial = 1, .window = 2, .hysteresis = 3}),
         {{O, tolerated, {1, 0, 1}}, {O, tolerated, {1, 0, 2}}, {O, exhausted, {1, 0, 3}}});
}

TEST_CASE("a loss scale never passes its ceiling of 2^24") {
  LossScale const rising({.initial = 0x1p23, .window = 1, .hysteresis = 2});
  replay(rising, {
                     {O, tolerated, {0x1p23, 0, 1}},
                     {C, grown, {0x1p24, 0, 0}},
                     {C, kept, {0x1p24, 0, 0}},
                     {O, tolerated, {0x1p24, 0, 1}},
                     {C, kept, {0x1p24, 0, 1}},
                     {O, halved, {0x1p23, 0, 2}},
                     {C, grown, {0x1p24, 0, 0}},
                 });
  // Windows are counted there too: no doubling comes early after the next overflow.
  LossScale const highest({.initial = 0x1p24, .window = 2, .hysteresis = 1});
  replay(highest, {
                      {C, kept, {0x1p24, 1, 0}},
                      {C, kept, {0x1p24, 0, 0}},
                      {C, kept, {0x1p24, 1, 0}},
                      {O, halved, {0x1p23, 0, 1}},
                      {C, kept, {0x1p23, 1, 1}},
                      {C, grown, {0x1p24, 0, 0}},
                  });
}

TEST_CASE("the default: 2^16, doubled after 1000 clean updates, the second overflow halves") {
  LossScale scale{LossScaleConfig{}};
  for (int i = 1; i < 1000; ++i) REQUIRE(scale.clean() == kept);
  CHECK(scale.value() == 65536);
  CHECK(scale.clean() == grown);
  CHECK(scale.value() == 131072);
  CHECK(scale.overflow() == tolerated);
  CHECK(scale.overflow() == halved);
  CHECK(scale.value() == 65536);
}

TEST_CASE("a restored loss scale goes on as the one that was saved") {
  auto const& table = window_3_hysteresis_2_from_8;
  for (std::size_t saved = 0; saved < table.size(); ++saved) {
    LossScale resumed({.initial = 1024, .window = 3, .hysteresis = 2});
    resumed.restore(table[saved].after);
    replay(resumed, {table.begin() + static_cast<std::ptrdiff_t>(saved) + 1, table.end()});
  }
}

TEST_CASE("a restored loss scale follows the window and hysteresis of its run") {
  LossScale resumed({.initial = 1, .window = 2, .hysteresis = 5});
  resumed.restore({64, 700, 3});
  replay(resumed, {{C, grown, {128, 0, 0}}});
  replay(resumed, {{O, tolerated, {64, 0, 4}}, {O, halved, {32, 0, 5}}});
}

TEST_CASE("states that no loss scale can be in are refused and change nothing") {
  double const nan = std::numeric_limits<double>::quiet_NaN(), inf = std::numeric_limits<double>::infinity();
  LossScale scale(small);
  for (LossScaleState const& bad : {LossScaleState{3, 0, 0}, LossScaleState{0, 0, 0}, LossScaleState{-2, 0, 0},
                                    LossScaleState{0.5, 0, 0}, LossScaleState{0x1p25, 0, 0}, LossScaleState{nan, 0, 0},
                                    LossScaleState{inf, 0, 0}, LossScaleState{8, -1, 0}, LossScaleState{8, 0, -1}}) {
    auto const message = message_of<Error>([&] { scale.restore(bad); });
    INFO(message);
    CHECK(contains(message, {"the loss scale cannot be", "power of two", "resume from another checkpoint"}));
    CHECK(scale.state() == LossScaleState{8, 0, 0});
  }
}
