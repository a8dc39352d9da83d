#include "comm/transport.hpp"
#include "core/error.hpp"
#include "support/catch.hpp"
#include "support/messages.hpp"

using namespace kozero;
using namespace kozero::test;
using Catch::Matchers::Contains;

namespace {

/// Four devices on each of two hosts, with NCCL.
std::vector<TransportSite> eight_devices() {
  std::vector<TransportSite> sites;
  for (int rank = 0; rank < 8; ++rank) {
    sites.push_back(
        {.host = fmt::format("{}", rank < 4 ? "a" : "b"), .device = fmt::format("GPU-{}", rank), .nccl = "2.28.9"});
  }
  return sites;
}

std::string const mpi = "MPI (Library 1)";

} // namespace

TEST_CASE("ranks with a device each exchange by NCCL, unless the deck says otherwise") {
  auto const sites = eight_devices();
  for (Transport const asked : {Transport::automatic, Transport::nccl}) {
    auto const choice = choose_transport(asked, sites, mpi);
    CHECK(choice.transport == Transport::nccl);
    CHECK(choice.text == "NCCL 2.28.9; sums by kernels, first within hosts of 4 ranks, then between 2 hosts");
    CHECK(choice.hosts.ranks_of_each() == 4);
  }
  auto const choice = choose_transport(Transport::mpi, sites, mpi);
  CHECK(choice.transport == Transport::mpi);
  CHECK(choice.text == "MPI (Library 1), through host memory (parallel.transport is mpi)");
}

TEST_CASE("hosts with another number of ranks, or with ranks in turn, sum in one level") {
  auto sites = eight_devices();
  sites.pop_back();
  CHECK(choose_transport(Transport::automatic, sites, mpi).text == "NCCL 2.28.9; sums by kernels");
  sites = eight_devices();
  for (std::size_t rank = 0; rank < sites.size(); ++rank) sites[rank].host = fmt::format("host{}", rank % 2);
  auto const choice = choose_transport(Transport::automatic, sites, mpi);
  CHECK(choice.text == "NCCL 2.28.9; sums by kernels");
  CHECK_FALSE(choice.hosts.together(0, 1));
  CHECK(choice.hosts.together(0, 2));
}

TEST_CASE("ranks that share a device exchange by MPI, and NCCL is refused with the reason") {
  auto sites = eight_devices();
  sites[6].device = "GPU-4";
  auto const choice = choose_transport(Transport::automatic, sites, mpi);
  CHECK(choice.transport == Transport::mpi);
  CHECK(choice.text ==
        "MPI (Library 1), through host memory (ranks 4 and 6 on host b share device GPU-4, and NCCL takes "
        "one rank a device)");
  std::string const refusal = message_of([&] { choose_transport(Transport::nccl, sites, mpi); });
  CHECK_THAT(refusal, Contains("parallel.transport is nccl and cannot be (ranks 4 and 6 on host b share"));
  // Containers on one machine may have names of their own.
  sites = eight_devices();
  sites[4].device = "GPU-0";
  CHECK_THROWS_AS(choose_transport(Transport::nccl, sites, mpi), InputError);
}

TEST_CASE("a rank without NCCL makes all exchange by MPI, and the table says why") {
  auto sites = eight_devices();
  sites[3].why_no_nccl = "NCCL cannot be loaded (no such file)";
  CHECK(choose_transport(Transport::automatic, sites, mpi).text ==
        "MPI (Library 1), through host memory (NCCL cannot be loaded (no such file))");
  CHECK_THROWS_AS(choose_transport(Transport::nccl, sites, mpi), InputError);
}

TEST_CASE("MPI is given device memory where its library says that it takes it, on all ranks, and not otherwise") {
  auto sites = eight_devices();
  for (auto& site : sites) site.mpi_reaches_device = true;
  auto const choice = choose_transport(Transport::mpi_device, sites, mpi);
  CHECK(choice.transport == Transport::mpi_device);
  CHECK(choice.text == "MPI (Library 1), which reaches device memory; sums by kernels");
  CHECK(choose_transport(Transport::automatic, sites, mpi).transport == Transport::nccl);
  sites[5].mpi_reaches_device = false;
  std::string const refusal = message_of([&] { choose_transport(Transport::mpi_device, sites, mpi); });
  CHECK_THAT(refusal, Contains("on host b MPI (Library 1) does not reach device memory"));
}

TEST_CASE("one rank exchanges with nobody, whatever the deck says") {
  std::vector<TransportSite> const one(1);
  for (auto const asked : {Transport::automatic, Transport::nccl, Transport::mpi, Transport::mpi_device}) {
    CHECK(choose_transport(asked, one, mpi).text == "none: one rank");
  }
}

TEST_CASE("this build's ranks choose alike") {
  auto const world = make_world_ranks();
  auto const choice = choose_transport(*world, {});
  CHECK(choice.hosts.ranks() == world->size());
  if (world->size() == 1) return;
  CHECK(choice.transport == Transport::mpi);
  CHECK(choice.text == world->description()); // the device is the host: there is nothing to say of it
  std::string const refusal = message_of([&] { choose_transport(*world, {.transport = Transport::nccl}); });
  CHECK_THAT(refusal, Contains("this program was built without NCCL"));
}
