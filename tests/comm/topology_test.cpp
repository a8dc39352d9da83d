#include "comm/topology.hpp"

#include "comm/survey.hpp"
#include "support/catch.hpp"

#include <fmt/format.h>

#include <array>

using namespace kozero;

namespace {

std::string pci(std::string const& inner, int index, char const* address, char const* type) {
  return fmt::format(
      R"(<object type="PCIDev" gp_index="{}" pci_busid="{}" pci_type="{}" pci_link_speed="0">{}</object>)", index,
      address, type, inner);
}
std::string os_device(int index, char const* name, int type) {
  return fmt::format(R"(<object type="OSDev" gp_index="{}" name="{}" osdev_type="{}"/>)", index, name, type);
}
std::string bridge(std::string const& inner, int index, std::string const& attributes) {
  return fmt::format(R"(<object type="Bridge" gp_index="{}" {}>{}</object>)", index, attributes, inner);
}
std::string sets(char const* processors, char const* nodes) {
  return fmt::format(R"(cpuset="{0}" complete_cpuset="{0}" nodeset="{1}" complete_nodeset="{1}")", processors, nodes);
}

/// A socket with two cores, a NUMA node, and a bridge below which stand what `devices` says.
std::string socket(int number, char const* processors, std::array<char const*, 2> processor, char const* node,
                   std::string const& devices) {
  std::string inner =
      fmt::format(R"(<object type="NUMANode" os_index="{}" {} gp_index="{}" local_memory="1073741824"/>)", number,
                  sets(processors, node), 100 * number + 3);
  for (int core = 0; core < 2; ++core) {
    int const index = 100 * number + 10 + 2 * core;
    std::string const own = sets(processor[static_cast<std::size_t>(core)], node);
    inner += fmt::format(
        R"(<object type="Core" os_index="{0}" {1} gp_index="{2}"><object type="PU" os_index="{0}" {1} gp_index="{3}"/></object>)",
        2 * number + core, own, index, index + 1);
  }
  inner += bridge(devices, 100 * number + 20,
                  fmt::format(R"(bridge_type="0-1" depth="0" bridge_pci="0000:[{0}0-{0}f]")", number));
  return fmt::format(R"(<object type="Package" os_index="{}" {} gp_index="{}">{}</object>)", number,
                     sets(processors, node), 100 * number + 2, inner);
}

constexpr int network = 2; // hwloc's numbers of kinds of devices
constexpr int open_fabrics = 3;

/// Two sockets. On the first a GPU and an InfiniBand card share a switch, and a second card stands apart; on the second
/// there is a GPU, and an Ethernet card somewhere else below the same root.
Topology two_sockets() {
  std::string const switched = bridge(
      pci("", 130, "0000:02:00.0", "0302 [10de:2335] [10de:18be] a1") +
          pci(os_device(132, "ib0", network) + os_device(133, "mlx5_0", open_fabrics), 131, "0000:03:00.0",
              "0207 [15b3:1021] [15b3:0023] 00"),
      125,
      R"(bridge_type="1-1" depth="1" bridge_pci="0000:[02-03]" pci_busid="0000:01:00.0" pci_type="0604 [1000:c030] [1000:100b] b0" pci_link_speed="0")");
  std::string const apart =
      pci(os_device(142, "mlx5_1", open_fabrics), 141, "0000:05:00.0", "0207 [15b3:1021] [15b3:0023] 00");
  std::string const second =
      pci("", 230, "0000:11:00.0", "0302 [10de:2335] [10de:18be] a1") +
      pci(os_device(232, "eno1", network), 231, "0000:12:00.0", "0200 [8086:1533] [8086:0000] 03");
  return Topology::of_xml(fmt::format(
      "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<!DOCTYPE topology SYSTEM \"hwloc2.dtd\">\n"
      "<topology version=\"2.0\">"
      R"(<object type="Machine" os_index="0" {} allowed_cpuset="0x0000000f" allowed_nodeset="0x00000003" gp_index="1">)"
      R"({}{}</object></topology>)",
      sets("0x0000000f", "0x00000003"),
      socket(0, "0x00000003", {"0x00000001", "0x00000002"}, "0x00000001", switched + apart),
      socket(1, "0x0000000c", {"0x00000004", "0x00000008"}, "0x00000002", second)));
}

ProcessorMask mask(std::initializer_list<std::size_t> processors) {
  ProcessorMask all;
  for (auto const p : processors) all.set(p);
  return all;
}

} // namespace

TEST_CASE("processors are of NUMA nodes") {
  Topology const topology = two_sockets();
  REQUIRE(topology.processors() == 4);
  CHECK(topology.nodes_of(mask({0})) == std::vector{0});
  CHECK(topology.nodes_of(mask({2, 3})) == std::vector{1});
  CHECK(topology.nodes_of(mask({1, 2})) == std::vector{0, 1});
  CHECK(topology.nodes_of(mask({77})).empty());
}

TEST_CASE("the nearest network card of a device is the one behind the same switch, by the name that libraries use") {
  auto const near = two_sockets().near("0000:02:00.0");
  CHECK(near.node == 0);
  CHECK(near.cards == std::vector<std::string>{"mlx5_0"});
}

TEST_CASE("a device that shares its root with no fast card takes the nearest one that libraries know") {
  auto const near = two_sockets().near("0000:11:00.0");
  CHECK(near.node == 1);
  CHECK(near.cards == std::vector<std::string>{"mlx5_0", "mlx5_1"}); // both across the sockets' link
}

TEST_CASE("what is not there has nothing near it") {
  CHECK(two_sockets().near("0000:77:00.0").cards.empty());
  CHECK_FALSE(two_sockets().near("nonsense").node);
  CHECK(Topology::of_xml("this is no XML").near("0000:02:00.0").cards.empty());
  CHECK(Topology::of_xml("").core_of(3) == 3);
}

TEST_CASE("this host has its processors, with its devices and without") {
  using enum Topology::Depth;
  auto const bare = Topology::of_this_host(processors);
  auto const full = Topology::of_this_host(devices);
  CHECK(bare.processors() > 0);
  CHECK(bare.processors() == full.processors());
  CHECK(bare.nodes_of(allowed_processors()) == full.nodes_of(allowed_processors()));
}

TEST_CASE("a device's place tells node and cards") {
  auto const place = place_of_device({.name = "GPU", .uuid = "GPU-1", .address = "0000:02:00.0"}, two_sockets());
  CHECK(place.node == 0);
  CHECK(place.cards == std::vector<std::string>{"mlx5_0"});
}
