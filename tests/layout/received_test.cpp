// What a collective brings a rank, beside messages that are sent one by one and counted where they come.
#include "layout/received.hpp"

#include "support/catch.hpp"

#include <functional>
#include <map>

using namespace kozero;

namespace {

/// The hosts of so many ranks in every way, by the number of each rank's host: 00, 01; 000, 001, 010, 011, 012; …
void for_each_arrangement(int ranks, std::function<void(std::vector<int> const&)> const& see) {
  std::vector<int> hosts;
  std::function<void(int)> const place = [&](int used) {
    if (static_cast<int>(hosts.size()) == ranks) return see(hosts);
    for (int host = 0; host <= used; ++host) {
      hosts.push_back(host);
      place(std::max(used, host + 1));
      hosts.pop_back();
    }
  };
  place(0);
}

/// Those in which ranks of a host are neighbours.
void for_each_run_arrangement(int ranks, std::function<void(std::vector<int> const&)> const& see) {
  for (unsigned cuts = 0; cuts < 1U << (ranks - 1); ++cuts) {
    std::vector<int> hosts = {0};
    for (int rank = 1; rank < ranks; ++rank) hosts.push_back(hosts.back() + static_cast<int>(cuts >> (rank - 1) & 1U));
    see(hosts);
  }
}

/// All of them where these are not too many.
void for_each_way(int most_ranks, std::function<void(std::vector<int> const&)> const& see) {
  for (int ranks = 1; ranks <= most_ranks; ++ranks) {
    if (ranks <= 6) for_each_arrangement(ranks, see);
    if (ranks > 6) for_each_run_arrangement(ranks, see);
  }
}

/// By definition: the number of ranks of each host, where ranks are together just if they are in one run of so many.
std::optional<int> equal_runs(std::vector<int> const& hosts) {
  auto const ranks = static_cast<int>(hosts.size());
  for (int run = 2; run < ranks; run *= 2) {
    bool all = ranks % run == 0;
    for (int a = 0; a < ranks; ++a) {
      for (int b = 0; b < ranks; ++b) all = all && (hosts.at(a) == hosts.at(b)) == (a / run == b / run);
    }
    if (all) return run;
  }
  return std::nullopt;
}

/// Ranks that send each other parts of an array, and what has come.
class Post {
public:
  Post(Partition const& partition, std::vector<int> hosts, ElementBytes const& bytes)
      : hosts_(std::move(hosts)), bytes_(bytes), sizes_(hosts_.size(), 0), came_(hosts_.size()) {
    for (std::int64_t element = 0; element < partition.size(); ++element) ++sizes_.at(partition.owner(element));
  }

  enum class Kind { values, partial_sums };
  /// The part of rank `owner`.
  void send(int from, int to, int owner, Kind kind) {
    if (from == to) return;
    std::int64_t const bytes = sizes_.at(owner) * (kind == Kind::values ? bytes_.moved : bytes_.partial_sum);
    Received& came = came_.at(to);
    came.elements += sizes_.at(owner);
    came.bytes += bytes;
    came.between_hosts_bytes += hosts_.at(from) == hosts_.at(to) ? 0 : bytes;
  }

  Received const& came(int rank) const { return came_.at(rank); }
  /// To all ranks of that rank's host.
  std::int64_t came_to_host_of(int rank) const {
    std::int64_t bytes = 0;
    for (std::size_t other = 0; other < hosts_.size(); ++other) {
      bytes += hosts_[other] == hosts_.at(rank) ? came_[other].between_hosts_bytes : 0;
    }
    return bytes;
  }

private:
  std::vector<int> hosts_;
  ElementBytes bytes_;
  std::vector<std::int64_t> sizes_; // of the parts, by owner
  std::vector<Received> came_;
};

/// Whose addends a rank holds of each part, as a bit a rank.
using Holds = std::vector<std::vector<unsigned>>; // [rank][owner]

/// Each rank sends each owner its part.
void send_parts(Post& post, Holds& holds, int ranks) {
  for (int from = 0; from < ranks; ++from) {
    for (int owner = 0; owner < ranks; ++owner) {
      post.send(from, owner, owner, Post::Kind::values);
      if (from != owner) holds.at(owner).at(owner) ^= 1U << from;
    }
  }
}

/// Each rank sends the part of each owner to the rank of its own host that stands where the owner does on the other;
/// this one adds up its host's and sends the owner the sum.
void send_parts_in_two_levels(Post& post, Holds& holds, int ranks, int near) {
  for (int from = 0; from < ranks; ++from) {
    for (int owner = 0; owner < ranks; ++owner) {
      int const adds = from / near * near + owner % near;
      post.send(from, adds, owner, Post::Kind::values);
      if (from != adds) holds.at(adds).at(owner) ^= 1U << from;
    }
  }
  for (int owner = 0; owner < ranks; ++owner) {
    for (int host = 0; host < ranks / near; ++host) {
      int const from = host * near + owner % near;
      if (from == owner) continue;
      post.send(from, owner, owner, Post::Kind::partial_sums);
      holds.at(owner).at(owner) ^= holds.at(from).at(owner);
    }
  }
}

/// Each part from its owner to each rank; in two levels to the first rank of each host, which hands it on.
void send_whole(Post& post, std::vector<int> const& hosts, int owner, bool two_levels) {
  std::map<int, int> first; // rank of each host
  for (int rank = 0; rank < static_cast<int>(hosts.size()); ++rank) first.try_emplace(hosts.at(rank), rank);
  for (int rank = 0; rank < static_cast<int>(hosts.size()); ++rank) {
    bool const far = hosts.at(rank) != hosts.at(owner);
    int const gate = first.at(hosts.at(rank));
    post.send(two_levels && far && rank != gate ? gate : owner, rank, owner, Post::Kind::values);
  }
}

constexpr std::int64_t sizes[] = {0, 1, 7, 8, 9, 100, 177, 1001};
constexpr ElementBytes types[] = {{.moved = 4, .partial_sum = 4}, {.moved = 2, .partial_sum = 4}};

/// Ways to exchange where ranks are so: by messages to all, and in two levels where that can be.
std::vector<ExchangeWay> ways_of(std::vector<int> const& hosts) {
  std::vector<ExchangeWay> ways = {{.hosts = RankHosts(hosts)}};
  if (auto const near = equal_runs(hosts)) ways.push_back({.hosts = RankHosts(hosts), .ranks_of_host = near});
  return ways;
}

/// With every way of ranks to be on hosts and to exchange, sizes and types.
void for_each_exchange(
    int most_ranks,
    std::function<void(std::vector<int> const&, ExchangeWay const&, std::int64_t, ElementBytes const&)> const& see) {
  for_each_way(most_ranks, [&](std::vector<int> const& hosts) {
    for (ExchangeWay const& way : ways_of(hosts)) {
      for (std::int64_t const size : sizes) {
        for (ElementBytes const& element : types) see(hosts, way, size, element);
      }
    }
  });
}

/// In two levels what comes to a host counts for its ranks in equal shares, rounded down to bytes.
bool agrees(Received const& told, Post const& post, int rank, ExchangeWay const& way) {
  Received const& came = post.came(rank);
  std::int64_t const far =
      way.ranks_of_host ? post.came_to_host_of(rank) / *way.ranks_of_host : came.between_hosts_bytes;
  return told == Received{came.elements, came.bytes, far};
}

} // namespace

TEST_CASE("ranks are together where their hosts are alike") {
  RankHosts const hosts({3, 1, 3});
  CHECK(hosts.ranks() == 3);
  CHECK(hosts.together(0, 2));
  CHECK(hosts.together(1, 1));
  CHECK(!hosts.together(0, 1));
  CHECK(RankHosts(5).together(0, 4));
  RankHosts const runs = RankHosts::runs_of(4, 10);
  CHECK(runs.ranks() == 10);
  for (int a = 0; a < 10; ++a) {
    for (int b = 0; b < 10; ++b) CHECK(runs.together(a, b) == (a / 4 == b / 4));
  }
}

TEST_CASE("sums are made in two levels just where hosts hold equal runs of a power of two of ranks") {
  int two_levels = 0;
  auto const check = [&](std::vector<int> const& hosts) {
    auto const wanted = equal_runs(hosts);
    two_levels += wanted ? 1 : 0;
    CAPTURE(hosts);
    REQUIRE(RankHosts(hosts).ranks_of_each() == wanted);
    std::vector<int> renamed;
    for (int const host : hosts) renamed.push_back(17 - host);
    REQUIRE(RankHosts(renamed).ranks_of_each() == wanted);
  };
  for (int ranks = 1; ranks <= 8; ++ranks) for_each_arrangement(ranks, check);
  CHECK(two_levels == 4); // 4 = 2 + 2, 6 = 2 + 2 + 2, 8 = 2 + 2 + 2 + 2 = 4 + 4
  for (int ranks = 9; ranks <= 12; ++ranks) for_each_run_arrangement(ranks, check);
  CHECK(two_levels == 4 + 1 + 2); // 10 in twos, 12 in twos and fours
  CHECK(RankHosts::runs_of(8, 1024).ranks_of_each() == 8);
  CHECK(RankHosts::runs_of(8, 1020).ranks_of_each() == std::nullopt);
  CHECK(RankHosts::runs_of(6, 36).ranks_of_each() == std::nullopt);
}

TEST_CASE("a reduce_scatter brings what messages bring, and the owner has every rank's addend once") {
  for_each_exchange(
      12, [](std::vector<int> const& hosts, ExchangeWay const& way, std::int64_t size, ElementBytes const& element) {
        auto const ranks = static_cast<int>(hosts.size());
        Partition const partition(size, ranks);
        Post post(partition, hosts, element);
        Holds holds(hosts.size());
        for (int rank = 0; rank < ranks; ++rank) holds.at(rank).assign(hosts.size(), 1U << rank);
        if (way.ranks_of_host) send_parts_in_two_levels(post, holds, ranks, *way.ranks_of_host);
        if (!way.ranks_of_host) send_parts(post, holds, ranks);
        CAPTURE(hosts, size, element.moved, way.ranks_of_host.value_or(0));
        for (int rank = 0; rank < ranks; ++rank) {
          REQUIRE(holds.at(rank).at(rank) == (1U << ranks) - 1);
          REQUIRE(received_in_reduce_scatter(partition, rank, way, element) == post.came(rank));
        }
      });
}

TEST_CASE("an all_gather brings what messages bring, and in two levels each part to a host once") {
  for_each_exchange(
      12, [](std::vector<int> const& hosts, ExchangeWay const& way, std::int64_t size, ElementBytes const& element) {
        auto const ranks = static_cast<int>(hosts.size());
        Partition const partition(size, ranks);
        Post post(partition, hosts, element);
        for (int owner = 0; owner < ranks; ++owner) send_whole(post, hosts, owner, way.ranks_of_host.has_value());
        CAPTURE(hosts, size, element.moved, way.ranks_of_host.value_or(0));
        for (int rank = 0; rank < ranks; ++rank) {
          REQUIRE(agrees(received_in_all_gather(partition, rank, way, element), post, rank, way));
          Received const both = received_in_reduce_scatter(partition, rank, way, element) +
                                received_in_all_gather(partition, rank, way, element);
          REQUIRE(received_in_all_reduce(partition, rank, way, element) == both);
        }
      });
}

TEST_CASE("a broadcast brings the array to all but its root, and in two levels to each other host once") {
  for_each_exchange(
      8, [](std::vector<int> const& hosts, ExchangeWay const& way, std::int64_t size, ElementBytes const& element) {
        auto const ranks = static_cast<int>(hosts.size());
        for (int root = 0; root < ranks; ++root) {
          Partition const all_of_root(size, 1); // whose one part is handed to the root
          Post post(all_of_root, hosts, element);
          std::map<int, int> gate; // the rank of each host that the root sends to
          for (int rank = 0; rank < ranks; ++rank) {
            if (rank == root) continue;
            bool const far = hosts.at(rank) != hosts.at(root);
            auto const known = gate.try_emplace(hosts.at(rank), rank);
            bool const passed_on = way.ranks_of_host && far && !known.second;
            post.send(passed_on ? known.first->second : root, rank, 0, Post::Kind::values);
          }
          CAPTURE(hosts, size, root, way.ranks_of_host.value_or(0));
          for (int rank = 0; rank < ranks; ++rank) {
            REQUIRE(agrees(received_in_broadcast(size, rank, root, way, element), post, rank, way));
          }
        }
      });
}

TEST_CASE("two levels bring hosts less in all: of sums one for each host, of parts each once") {
  constexpr int ranks = 64;
  constexpr int near = 8;
  constexpr std::int64_t size = 64 * 1000;
  Partition const partition(size, ranks);
  ExchangeWay const one{.hosts = RankHosts::runs_of(near, ranks)};
  ExchangeWay const two{.hosts = RankHosts::runs_of(near, ranks), .ranks_of_host = near};
  ElementBytes const fp32;
  auto const sum = [&](auto const& received_in, ExchangeWay const& way) {
    Received all;
    for (int rank = 0; rank < ranks; ++rank) all = all + received_in(partition, rank, way, fp32);
    return all;
  };
  // Each of 8 hosts lacks 7/8 of the array.
  CHECK(sum(received_in_all_gather, one).between_hosts_bytes == 4 * ranks * size * 7 / 8);
  CHECK(sum(received_in_all_gather, two).between_hosts_bytes == 4 * 8 * size * 7 / 8);
  CHECK(sum(received_in_reduce_scatter, one).between_hosts_bytes == 4 * size * (ranks - near));
  CHECK(sum(received_in_reduce_scatter, two).between_hosts_bytes == 4 * size * 7);
  CHECK(sum(received_in_reduce_scatter, two).bytes == 4 * size * (7 * 8 + 7)); // 7 neighbours on each of 8 hosts
}
