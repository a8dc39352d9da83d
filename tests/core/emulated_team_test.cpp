// Teams of fibres.
#include "core/emulated/policy.hpp"
#include "core/emulated/team.hpp"
#include "support/catch.hpp"

#include "core/error.hpp"

#include <cmath>
#include <memory>
#include <set>
#include <vector>

namespace {

using namespace kozero;
using namespace kozero::emulated;
using Catch::Matchers::Contains;

/// Σ ranks + 1 through the exchange area.
float sum_by(Team const& team, bool with_barrier) {
  team.shared()[team.rank()] = static_cast<float>(team.rank() + 1);
  if (with_barrier) team.barrier();
  float sum = 0;
  for (int i = 0; i < team.size(); ++i) sum += team.shared()[i];
  return sum;
}

/// NaN where the threads do not agree.
float team_sum(int size, bool with_barrier) {
  std::vector<float> sums(static_cast<std::size_t>(size));
  run_team(size, 0,
           [&](Team const& team) { sums[static_cast<std::size_t>(team.rank())] = sum_by(team, with_barrier); });
  for (float const sum : sums) {
    if (sum != sums.front()) return NAN;
  }
  return sums.front();
}

} // namespace

TEST_CASE("Threads of a team meet at barriers, whatever their number") {
  for (int const size : {1, 2, 3, 4, 8, 32}) CHECK(team_sum(size, true) == static_cast<float>(size * (size + 1) / 2));
}

TEST_CASE("A sum without its barrier is wrong, always") {
  for (char const* text : {"immediate", "latest", "earliest", "random:7"}) {
    set_policy(parse_policy(text));
    for (int round = 0; round < 50; ++round) CHECK(std::isnan(team_sum(default_team_size, false)));
  }
  set_policy(parse_policy("latest"));
}

TEST_CASE("Between barriers threads take turns in orders that the seed decides") {
  auto const orders = [](char const* text) {
    set_policy(parse_policy(text));
    std::set<std::vector<int>> found;
    std::vector<int> all;
    run_team(3, 0, [&](Team const& team) {
      for (int round = 0; round < 100; ++round) {
        all.push_back(team.rank());
        team.barrier();
      }
    });
    for (std::size_t i = 0; i < all.size(); i += 3) found.insert({all[i], all[i + 1], all[i + 2]});
    return std::make_pair(all, found);
  };
  CHECK(orders("latest").second.size() == 6);
  CHECK(orders("random:5").first == orders("random:5").first);
  CHECK(orders("random:5").first != orders("random:6").first);
  CHECK(orders("immediate").second == std::set<std::vector<int>>{{0, 1, 2}});
  set_policy(parse_policy("latest"));
}

TEST_CASE("Scratch memory is the team's, full of NaN at first, and ends where it was said to") {
  for (int round = 0; round < 2; ++round) {
    std::set<float*> first;
    std::set<double*> second;
    run_team(4, 3 * 4 + 4 + 8, [&](Team const& team) {
      auto* const floats = static_cast<float*>(team.scratch(3 * 4));
      auto* const real = static_cast<double*>(team.scratch(8));
      if (first.empty()) {
        CHECK(std::isnan(floats[0]));
        CHECK(std::isnan(floats[2]));
        CHECK(std::isnan(*real));
      }
      team.barrier();
      first.insert(floats);
      second.insert(real);
      *real = floats[0] = floats[2] = 1;
    });
    CHECK(first.size() == 1);
    CHECK(second.size() == 1);
  }
  auto const takes = [](std::int64_t given, std::int64_t taken) {
    run_team(4, given, [&](Team const& team) { static_cast<char*>(team.scratch(taken))[taken - 1] = 1; });
  };
  CHECK_NOTHROW(takes(48 << 10, 48 << 10));
  CHECK_THROWS_WITH(takes(100, 101), Contains("a team takes 101 bytes of scratch memory (it was made with 100)"));
  CHECK_THROWS_AS(takes(0, 1), Error);
}

TEST_CASE("A barrier that not all threads reach is an error") {
  auto const alive = std::make_shared<int>();
  auto const lonely = [&](int without) {
    run_team(4, 0, [&](Team const& team) {
      auto const held = alive; // destroyed although the thread does not get further
      if (team.rank() != without) team.barrier();
    });
  };
  for (int const without : {0, 1, 3}) {
    CHECK_THROWS_WITH(lonely(without), Contains("a barrier is not reached by all threads (1 of 4 have ended)"));
  }
  CHECK_NOTHROW(lonely(4));
  CHECK(alive.use_count() == 1);
}

TEST_CASE("An exception of a thread comes out of the team, and the others are unwound") {
  auto const alive = std::make_shared<int>();
  auto const fail = [&](int at) {
    run_team(5, 0, [&](Team const& team) {
      auto const held = alive;
      for (int round = 0; round < 3; ++round) {
        if (round == at && team.rank() == 2) throw Error("out of range");
        team.barrier();
      }
    });
  };
  for (int const at : {0, 1, 2}) CHECK_THROWS_WITH(fail(at), "out of range");
  CHECK(alive.use_count() == 1);
  CHECK(team_sum(5, true) == 15); // and the next one runs
  auto const nested = [] { run_team(2, 0, [](Team const&) { run_team(2, 0, [](Team const&) {}); }); };
  CHECK_THROWS_WITH(nested(), Contains("do not nest"));
}

TEST_CASE("Many teams of changing sizes run one after the other") {
  double sum = 0;
  for (int i = 0; i < 100000; ++i) {
    run_team(1 + i % 5, i % 64, [&](Team const& team) {
      team.barrier();
      sum += team.rank() + 1;
      team.barrier();
    });
  }
  CHECK(sum == 20000.0 * (1 + 3 + 6 + 10 + 15));
}
