#pragma once
#include "comm/traffic.hpp"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace kozero {

class Collectives;
class Ledger;

/// Bytes of host memory for one other rank, and from it.
struct Outgoing {
  int to = 0;
  std::span<std::byte const> bytes;
};
struct Incoming {
  int from = 0;
  std::span<std::byte> bytes;
};

/// Ranks that agree with each other: small values, texts and messages in host memory, at once. They know of no lane and
/// no device; what a model consists of is moved by Collectives.
///
/// Every call but exchange is collective: all ranks, same order, same sizes. All that is received counts as bytes of
/// control; the Collectives of the same ranks count in traffic() too.
///
///     auto const world = make_world_ranks();
///     world->sum(std::span(&valid_targets, 1));
///     auto const pair = world->split({rank / 2 * 2, rank / 2 * 2 + 1});
class Ranks {
public:
  virtual ~Ranks() = default;
  Ranks() = default;
  Ranks(Ranks const&) = delete;
  Ranks& operator=(Ranks const&) = delete;

  virtual int rank() const = 0;
  virtual int size() const = 0;
  /// "self", "MPI (MPICH 4.0.2)"
  virtual std::string description() const = 0;
  /// No rank leaves before all have come.
  virtual void barrier() = 0;

  /// Cuts these ranks into groups: each rank names the members of its own, by their ranks here, in the order of their
  /// ranks there. Every rank is in one group, and the members of a group name the same list.
  virtual std::unique_ptr<Ranks> split(std::vector<int> const& members) = 0;
  /// The way of data among these ranks, which must outlive it, as the ledger must.
  virtual std::unique_ptr<Collectives> make_collectives(Ledger& ledger) = 0;

  /// Sends and receives messages between single ranks, and returns when all have left and come. Each has its like on
  /// the other side, of as many bytes; those of one rank to another meet in the order of the lists, over all calls. A
  /// call starts them all before it waits, so the order of ranks in the lists is free.
  void exchange(std::span<Outgoing const> sends, std::span<Incoming const> receives);
  /// Every rank gets the sums, added in the order of tree_sum.
  void sum(std::span<double> values);
  void sum(std::span<std::int64_t> values);
  /// Every rank's value, by rank.
  std::vector<std::int64_t> gather(std::int64_t value);
  /// Every rank's text, by rank.
  std::vector<std::string> gather(std::string const& text);
  /// The root's text on every rank.
  void broadcast(std::string& text, int root);

  TrafficLedger const& traffic() const { return traffic_; }
  TrafficLedger& traffic() { return traffic_; }

private:
  virtual void exchange_messages(std::span<Outgoing const> sends, std::span<Incoming const> receives) = 0;
  /// size() equal parts, by rank: in the own one, out all.
  virtual void gather_parts(std::span<std::byte> all) = 0;
  virtual void broadcast_bytes(std::span<std::byte> bytes, int root) = 0;

  std::span<std::byte const> gather_bytes(std::span<std::byte const> mine);
  template <class T>
  void sum_values(std::span<T> values);

  TrafficLedger traffic_;
  std::vector<std::byte> gathered_; // of the last gather_bytes()
  std::vector<void const*> addends_;
};

/// All ranks of the program: SelfRanks where there is one, else MpiRanks. Collective; MPI must be up.
std::unique_ptr<Ranks> make_world_ranks();

} // namespace kozero
