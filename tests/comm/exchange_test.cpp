// Messages between single ranks.
#include "comm/mpi_collectives.hpp"
#include "comm/rank_values.hpp"
#include "support/world.hpp"

#include <algorithm>
#include <numeric>

using namespace kozero;
using namespace kozero::test;

namespace {

/// Whom a rank sends something to, and how much.
struct Post {
  int from, to;
  std::int64_t count;
};

/// Messages of i64 whose content tells the sender, the receiver and the place in the list.
std::vector<std::int64_t> content(Post const& post, std::size_t number) {
  std::vector<std::int64_t> values(static_cast<std::size_t>(post.count));
  std::iota(values.begin(), values.end(),
            (post.from * 100 + post.to) * 1'000'000'000 + std::int64_t(number) * 1'000'000);
  return values;
}

enum class Order { listed, reversed };

/// All posts in one exchange. The receivers name the messages of different ranks in an order of their own.
void require_delivered(Ranks& ranks, std::vector<Post> const& posts, Order order) {
  std::vector<std::vector<std::int64_t>> sent;
  std::vector<GuardedArray<std::int64_t, HostMemory>> received;
  std::vector<std::size_t> incoming;
  for (std::size_t p = 0; p < posts.size(); ++p) {
    sent.push_back(posts[p].from == ranks.rank() ? content(posts[p], p) : std::vector<std::int64_t>());
    if (posts[p].to == ranks.rank()) incoming.push_back(p);
  }
  if (order == Order::reversed) {
    std::ranges::stable_sort(incoming, std::ranges::greater(), [&](std::size_t p) { return posts[p].from; });
  }
  for (std::size_t const p : incoming) received.emplace_back(posts[p].count);

  std::vector<Outgoing> sends;
  std::vector<Incoming> receives;
  for (std::size_t p = 0; p < posts.size(); ++p) {
    if (posts[p].from == ranks.rank()) sends.push_back({posts[p].to, std::as_bytes(std::span(sent[p]))});
  }
  std::int64_t bytes = 0;
  for (std::size_t i = 0; i < incoming.size(); ++i) {
    std::int64_t const count = posts[incoming[i]].count;
    receives.push_back({posts[incoming[i]].from,
                        std::as_writable_bytes(std::span(received[i].data(), static_cast<std::size_t>(count)))});
    bytes += 8 * count;
  }
  ranks.traffic() = TrafficLedger();
  ranks.exchange(sends, receives);
  CHECK(ranks.traffic()[Traffic::control].bytes == bytes);
  for (std::size_t i = 0; i < incoming.size(); ++i) {
    auto const expected = content(posts[incoming[i]], incoming[i]);
    CHECK((received[i].get() == expected));
    CHECK(received[i].guards_intact());
  }
}

} // namespace

TEST_CASE("an exchange delivers messages of all sizes between all pairs, whatever the order of ranks") {
  MpiRanks ranks;
  std::vector<Post> posts;
  for (int from = 0; from < ranks.size(); ++from) {
    for (int to = 0; to < ranks.size(); ++to) {
      if (from == to) continue;
      for (std::int64_t const count : {3, 0, 1, 5000, from + 2 * to}) posts.push_back({from, to, count});
    }
  }
  require_delivered(ranks, posts, Order::listed);
  require_delivered(ranks, posts, Order::reversed);
}

TEST_CASE("a ring of long messages does not wait for itself") {
  auto const ranks = make_world_ranks();
  std::vector<Post> ring;
  for (int rank = 0; rank < ranks->size() && ranks->size() > 1; ++rank) {
    ring.push_back({rank, (rank + 1) % ranks->size(), 300'001});
  }
  require_delivered(*ranks, ring, Order::listed);
}

TEST_CASE("ranks that an exchange does not name need not come, and collectives may be under way") {
  Ledger ledger;
  MpiRanks ranks;
  MpiCollectives collectives(ranks, ledger);
  Lane const lane;
  Partition const partition(1003, ranks.size());
  GuardedArray<float> array(1003);
  fill_shard(array, 7, partition.shard(ranks.rank()));
  Pending pending = collectives.all_gather(lane, array.span(), partition, Traffic::parameters);
  if (ranks.size() > 1 && (ranks.rank() == 0 || ranks.rank() == ranks.size() - 1)) {
    require_delivered(ranks, {{ranks.size() - 1, 0, 40'000}, {0, ranks.size() - 1, 1}}, Order::listed);
    require_delivered(ranks, {{ranks.size() - 1, 0, 17}}, Order::listed);
  }
  pending.wait(lane);
  require_gathered(array, 7);
}

TEST_CASE("one rank alone has nothing to exchange") {
  SelfRanks self;
  self.exchange({}, {});
  CHECK(self.traffic()[Traffic::control].bytes == 0);
}
