#include "comm/transport.hpp"

#include "comm/agree.hpp"
#include "comm/mpi_collectives.hpp"
#include "comm/mpi_ranks.hpp"
#include "comm/survey.hpp"
#include "core/device.hpp"
#include "core/error.hpp"

#include <algorithm>
#include <map>
#include <sstream>

namespace kozero {

namespace {

RankHosts hosts_of(std::vector<TransportSite> const& sites) {
  std::map<std::string, int> numbers;
  std::vector<int> hosts;
  for (auto const& site : sites) hosts.push_back(numbers.try_emplace(site.host, std::ssize(numbers)).first->second);
  return RankHosts(std::move(hosts));
}

/// Why NCCL cannot be used; empty where it can.
std::string why_no_nccl(std::vector<TransportSite> const& sites) {
  for (auto const& site : sites) {
    if (!site.why_no_nccl.empty()) return site.why_no_nccl;
  }
  std::map<std::string, std::ptrdiff_t> ranks; // by device, whatever the hosts are called: containers have names too
  for (auto const& site : sites) {
    if (site.device.empty()) continue;
    auto const rank = &site - sites.data();
    auto const [first, is_new] = ranks.try_emplace(site.device, rank);
    if (is_new) continue;
    return fmt::format("ranks {} and {} on host {} share device {}, and NCCL takes one rank a device", first->second,
                       rank, site.host, site.device);
  }
  return {};
}

std::string text_of_nccl(std::vector<TransportSite> const& sites, RankHosts const& hosts) {
  std::string const text = fmt::format("NCCL {}; sums by kernels", sites.front().nccl);
  auto const each = hosts.ranks_of_each();
  if (!each) return text;
  return fmt::format("{}, first within hosts of {} ranks, then between {} hosts", text, *each, hosts.ranks() / *each);
}

} // namespace

TransportChoice choose_transport(Transport asked, std::vector<TransportSite> const& sites, std::string const& mpi) {
  TransportChoice choice{.transport = Transport::mpi, .hosts = hosts_of(sites), .text = "none: one rank"};
  if (sites.size() == 1) return choice;
  std::string const no_nccl = why_no_nccl(sites);
  bool const have_devices = std::ranges::none_of(sites, [](auto const& site) { return site.device.empty(); });
  std::string const through_host = fmt::format("{}{}", mpi, have_devices ? ", through host memory" : "");
  switch (asked) {
  case Transport::nccl:
    if (!no_nccl.empty()) {
      throw InputError(fmt::format("parallel.transport is nccl and cannot be ({}); correct that, or let it be auto or "
                                   "mpi",
                                   no_nccl));
    }
    [[fallthrough]];
  case Transport::automatic:
    if (no_nccl.empty()) {
      choice.transport = Transport::nccl;
      choice.text = text_of_nccl(sites, choice.hosts);
    } else {
      choice.text = have_devices ? fmt::format("{} ({})", through_host, no_nccl) : mpi;
    }
    return choice;
  case Transport::mpi: choice.text = fmt::format("{} (parallel.transport is mpi)", through_host); return choice;
  case Transport::mpi_device: break;
  }
  auto const blind = std::ranges::find(sites, false, &TransportSite::mpi_reaches_device);
  if (blind != sites.end()) {
    throw InputError(fmt::format("parallel.transport is mpi-device, and on host {} {} does not reach device memory (it "
                                 "was built or started without support for CUDA); use such a library, or let it be "
                                 "auto or mpi",
                                 blind->host, mpi));
  }
  choice.transport = Transport::mpi_device;
  choice.text = fmt::format("{}, which reaches device memory; sums by kernels", mpi);
  return choice;
}

namespace {

/// Of this process; Error where its device cannot be asked. NCCL is loaded where it may be used.
TransportSite find_site(Transport asked) {
  TransportSite site{.host = host_name(), .mpi_reaches_device = mpi_reaches_devices()};
  if (auto const device = device_identity()) site.device = device->uuid;
  bool const may_be_used = asked == Transport::automatic || asked == Transport::nccl;
  if (!may_be_used) return site;
  if (!built_with_nccl()) {
    site.why_no_nccl = "this program was built without NCCL";
    return site;
  }
  try {
    site.nccl = load_nccl();
  } catch (Error const& error) {
    site.why_no_nccl = error.what();
  }
  return site;
}

// A site travels as lines.
std::string write(TransportSite const& site) {
  return fmt::format("{}\n{}\n{}\n{}\n{}", site.host, site.device, site.nccl, site.mpi_reaches_device ? "reaches" : "",
                     site.why_no_nccl);
}

TransportSite read(std::string const& text) {
  TransportSite site;
  std::istringstream lines(text);
  std::string reaches;
  std::getline(lines, site.host);
  std::getline(lines, site.device);
  std::getline(lines, site.nccl);
  std::getline(lines, reaches);
  std::getline(lines, site.why_no_nccl, '\0');
  site.mpi_reaches_device = !reaches.empty();
  return site;
}

} // namespace

TransportChoice choose_transport(Ranks& world, ParallelConfig const& parallel) {
  std::vector<TransportSite> sites;
  if (world.size() == 1) return choose_transport(parallel.transport, {TransportSite{}}, {});
  TransportSite const own = on_all_ranks(world, [&] { return find_site(parallel.transport); });
  for (auto const& text : world.gather(write(own))) sites.push_back(read(text));
  return on_all_ranks(world, [&] { return choose_transport(parallel.transport, sites, world.description()); });
}

std::unique_ptr<Collectives> make_collectives(Ranks& group, std::vector<int> const& members, Ledger& ledger,
                                              TransportChoice const& choice,
                                              std::shared_ptr<MessageLane> const& shared) {
  RankHosts const hosts = choice.hosts.among(members);
  if (choice.transport == Transport::nccl && group.size() > 1) {
    return make_nccl_collectives(group, ledger, shared, {.hosts = hosts});
  }
  MpiOptions options{.hosts = hosts};
  if (choice.transport == Transport::mpi_device) options.device = MpiOptions::DeviceAccess::aware;
  return make_mpi_collectives(group, ledger, options);
}

} // namespace kozero
