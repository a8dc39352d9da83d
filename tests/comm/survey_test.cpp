#include "comm/survey.hpp"
#include "support/catch.hpp"
#include "support/world.hpp"

using namespace kozero;
using namespace kozero::test;

namespace {

ProcessorMask range(std::size_t first, std::size_t last) {
  ProcessorMask mask;
  for (std::size_t p = first; p <= last; ++p) mask.set(p);
  return mask;
}

// On a host of eight processors with one core each.
RankPlace place(std::string host, int threads, ProcessorMask processors) {
  return {std::move(host), threads, 8, processors, processors};
}

/// A rank beside a device of its host, on processors of NUMA node `node`.
RankPlace beside(std::string host, std::string device, int device_node, int node, int visible = 4) {
  RankPlace rank = place(std::move(host), 1, range(0, 7));
  rank.nodes = {node};
  rank.device = {
      .identity = {.name = "NVIDIA H200", .uuid = std::move(device), .address = "0000:1b:00.0", .visible = visible},
      .node = device_node,
      .cards = {"mlx5_0", "mlx5_1"}};
  return rank;
}

} // namespace

TEST_CASE("unbound ranks that fit are no reason to warn") {
  Survey const s = summarise({place("a", 4, range(0, 7)), place("a", 4, range(0, 7)), place("b", 8, range(0, 7))});
  CHECK(s.ranks == 3);
  CHECK(s.hosts == std::vector<std::string>{"a", "b"});
  CHECK(to_text(s.ranks_per_host) == "1 to 2");
  CHECK(to_text(s.threads_per_rank) == "4 to 8");
  CHECK_FALSE(s.ranks_share_cores);
  CHECK_FALSE(s.threads_exceed_processors);
  CHECK(s.binding == "none: any processor of the host (rank 0 on 0-7)");
}

TEST_CASE("ranks bound apart are no reason to warn") {
  Survey const s = summarise({place("a", 4, range(0, 3)), place("a", 4, range(4, 7))});
  CHECK(to_text(s.ranks_per_host) == "2");
  CHECK_FALSE(s.ranks_share_cores);
  CHECK_FALSE(s.threads_exceed_processors);
  CHECK(s.binding == "each rank has processors of its own (rank 0 on 0-3)");
}

TEST_CASE("two ranks bound to one core share it, though the host has seven more") {
  Survey const s = summarise({place("a", 1, range(0, 0)), place("a", 1, range(0, 0)), place("a", 1, range(1, 1))});
  CHECK(s.ranks_share_cores);
  CHECK(s.threads_exceed_processors);
  CHECK(s.binding == "some ranks have processors in common (rank 0 on 0)");
  // On two hosts the same masks are different cores.
  CHECK_FALSE(summarise({place("a", 1, range(0, 0)), place("b", 1, range(0, 0))}).ranks_share_cores);
}

TEST_CASE("two ranks on the two hardware threads of one core share it") {
  RankPlace first = place("a", 1, range(0, 0));
  RankPlace second = place("a", 1, range(1, 1));
  second.cores = first.cores;
  Survey const s = summarise({first, second});
  CHECK(s.ranks_share_cores);
}

TEST_CASE("more threads than processors") {
  CHECK(summarise({place("a", 9, range(0, 7))}).threads_exceed_processors);
  CHECK(summarise({place("a", 4, range(0, 7)), place("a", 5, range(0, 7))}).threads_exceed_processors);
  CHECK_FALSE(summarise({place("a", 8, range(0, 7))}).threads_exceed_processors);
  CHECK(summarise({place("a", 3, range(0, 1)), place("a", 1, range(2, 7))}).threads_exceed_processors);
}

TEST_CASE("sets of processors as text") {
  CHECK(to_text(range(0, 3) | range(8, 8) | range(10, 11)) == "0-3,8,10-11");
  CHECK(to_text(range(1023, 1023)) == "1023");
  CHECK(to_text(ProcessorMask()) == "none");
}

TEST_CASE_METHOD(World, "the survey of this run is the same on all ranks and tells the truth") {
  Survey const s = survey(world.ranks);
  CHECK(s.ranks == world.size());
  REQUIRE(s.hosts.size() == 1);
  CHECK(s.ranks_per_host.least == world.size());
  CHECK(s.threads_per_rank.most == static_cast<int>(HostExec().concurrency()));
  auto const bindings = world.ranks.gather(s.binding);
  for (auto const& binding : bindings) CHECK(binding == s.binding);
  RankPlace const here = find_place();
  CHECK(here.host == s.hosts.front());
  CHECK(here.processors == allowed_processors());
  CHECK(here.cores.any());
  CHECK(here.cores.count() <= here.processors.count());
  auto const device = device_identity();
  REQUIRE(here.device.has_value() == device.has_value());
  CHECK(s.devices.empty() == !device.has_value());
  if (device) { // all ranks of this host see the same ones
    CHECK(here.device->identity.uuid == device->uuid);
    CHECK(device->uuid.size() == std::string("GPU-01234567-89ab-cdef-0123-456789abcdef").size());
    CHECK(device->address.find_first_not_of("0123456789abcdef:.") == std::string::npos);
    CHECK(s.shared_devices.empty() == (world.size() <= device->visible));
    CHECK(s.ranks_without_sight.empty());
  }
  // With one thread a rank, ranks exceed processors exactly where threads do (no binding by the launcher here).
  if (s.binding.rfind("none", 0) == 0 && s.threads_per_rank.most == 1) {
    CHECK(s.threads_exceed_processors == (world.size() > static_cast<int>(here.processors.count())));
  }
}

TEST_CASE("ranks with a device each are told of, with what is near") {
  Survey const s = summarise({beside("a", "GPU-1", 0, 0), beside("a", "GPU-2", 0, 0), beside("b", "GPU-3", 1, 1)});
  CHECK(s.devices == "1 to 2 a host: NVIDIA H200; rank 0 on GPU-1 at 0000:1b:00.0, NUMA node 0, network cards mlx5_0, "
                     "mlx5_1");
  CHECK(s.shared_devices.empty());
  CHECK(s.ranks_far_from_device.empty());
  CHECK(s.ranks_without_sight.empty());
  CHECK(summarise({place("a", 1, range(0, 0))}).devices.empty());
}

TEST_CASE("ranks that share a device are named, also where containers give their host other names") {
  Survey const s = summarise({beside("a", "GPU-1", 0, 0), beside("a", "GPU-2", 0, 0), beside("a", "GPU-1", 0, 0),
                              beside("a", "GPU-1", 0, 0), beside("b", "GPU-2", 0, 0)});
  CHECK(s.shared_devices == std::vector<std::string>{"ranks 0, 2-3 on host a share device GPU-1",
                                                     "ranks 1, 4 on host a share device GPU-2"});
}

TEST_CASE("ranks far from their devices are named, but not where they may run near them too") {
  RankPlace both = beside("a", "GPU-3", 1, 0);
  both.nodes = {0, 1};
  RankPlace unknown = beside("a", "GPU-4", 0, 1);
  unknown.device->node.reset();
  Survey const s = summarise({beside("a", "GPU-1", 0, 1), beside("a", "GPU-2", 0, 0), both, unknown});
  CHECK(s.ranks_far_from_device == std::vector{0});
}

TEST_CASE("ranks that do not see all devices which ranks of their host compute on are named") {
  auto const blind = [](std::vector<RankPlace> const& places) { return summarise(places).ranks_without_sight; };
  CHECK(blind({beside("a", "GPU-1", 0, 0, 1), beside("a", "GPU-2", 0, 0, 1)}) == std::vector{0, 1});
  CHECK(blind({beside("a", "GPU-1", 0, 0, 1), beside("b", "GPU-2", 0, 0, 1)}).empty());
  CHECK(blind({beside("a", "GPU-1", 0, 0, 1), beside("a", "GPU-1", 0, 0, 1)}).empty());
  CHECK(blind({beside("a", "GPU-1", 0, 0, 2), beside("a", "GPU-2", 0, 0, 2)}).empty());
  // A socket's devices each, and only some of the ranks.
  CHECK(blind({beside("a", "GPU-1", 0, 0, 2), beside("a", "GPU-2", 0, 0, 2), beside("a", "GPU-3", 1, 1, 4)}) ==
        std::vector{0, 1});
}

TEST_CASE("a place comes to another rank as it was") {
  for (RankPlace sent : {place("a", 3, range(2, 5)), beside("node-1", "GPU-1a", 1, 0)}) {
    for (bool const bare : {false, true}) {
      if (bare && sent.device) {
        sent.device->node.reset();
        sent.device->cards.clear();
      }
      RankPlace const got = read_place(write_place(sent));
      CHECK(got.host == sent.host);
      CHECK(got.threads == sent.threads);
      CHECK(got.host_processors == sent.host_processors);
      CHECK(got.processors == sent.processors);
      CHECK(got.cores == sent.cores);
      CHECK(got.nodes == sent.nodes);
      REQUIRE(got.device.has_value() == sent.device.has_value());
      if (!sent.device) continue;
      CHECK(got.device->identity.name == sent.device->identity.name);
      CHECK(got.device->identity.uuid == sent.device->identity.uuid);
      CHECK(got.device->identity.address == sent.device->identity.address);
      CHECK(got.device->identity.visible == sent.device->identity.visible);
      CHECK(got.device->node == sent.device->node);
      CHECK(got.device->cards == sent.device->cards);
    }
  }
}
