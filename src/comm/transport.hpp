#pragma once
#include "comm/nccl.hpp"
#include "comm/ranks.hpp"
#include "config/config.hpp"
#include "layout/rank_hosts.hpp"

#include <string>
#include <vector>

namespace kozero {

/// What decides how ranks exchange, of one of them.
struct TransportSite {
  std::string host;
  std::string device;      // which one it computes on, by a name that no other has; empty where that is the host
  std::string why_no_nccl; // empty where it can be used
  std::string nccl;        // its version
  bool mpi_reaches_device = false;
};

/// How the ranks of a run exchange, and why so.
struct TransportChoice {
  Transport transport = Transport::mpi; // never automatic
  RankHosts hosts{1};
  std::string text; // for people: "NCCL 2.28.9, sums within hosts of 8 ranks, then between 4 hosts"
};

/// InputError where the ranks cannot exchange as they are asked to. `mpi` names the library.
TransportChoice choose_transport(Transport asked, std::vector<TransportSite> const& sites, std::string const& mpi);

/// Collective: the same on all ranks, errors too.
TransportChoice choose_transport(Ranks& world, ParallelConfig const& parallel);

/// The way of data among a group of the world's ranks, `members` by their ranks there. Collective; an error of one rank
/// of the group is all of the group's.
std::unique_ptr<Collectives> make_collectives(Ranks& group, std::vector<int> const& members, Ledger& ledger,
                                              TransportChoice const& choice,
                                              std::shared_ptr<MessageLane> const& shared);

} // namespace kozero
