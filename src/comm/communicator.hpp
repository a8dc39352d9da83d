#pragma once
#include "comm/traffic.hpp"
#include "core/dtype.hpp"
#include "core/lane.hpp"
#include "core/ledger.hpp"
#include "layout/partition.hpp"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace kozero {

/// Untyped memory that takes part in a collective.
struct Span {
  void* data = nullptr;
  std::int64_t count = 0; // elements
  DType type = DType::u8;
  Space space = Space::device;
};

/// Bytes of host memory for one other rank, and from it.
struct Outgoing {
  int to = 0;
  std::span<std::byte const> bytes;
};
struct Incoming {
  int from = 0;
  std::span<std::byte> bytes;
};

/// A collective under way. The memory given to it belongs to it until wait() has returned. Waiting twice is harmless;
/// one that dies unwaited waits by itself, and ends the program should that fail.
///
/// While an exception unwinds, one that dies abandons its collective: another rank may never come to it, and a rank
/// that waits for it would never get to MPI_Abort. The program must end then without another collective.
class Pending {
public:
  /// What a communicator has to do to finish. Destroying it must not wait for other ranks.
  class Work {
  public:
    virtual ~Work() = default;
    virtual void finish(Lane const& lane) = 0;
  };

  Pending() = default; // already done
  explicit Pending(std::unique_ptr<Work> work) : work_(std::move(work)) {}
  Pending(Pending&&) = default;
  Pending& operator=(Pending&& other) noexcept;
  ~Pending();
  void wait(Lane const& lane);

private:
  std::unique_ptr<Work> work_;
};

/// The ranks that train together. Every call but exchange is collective: all ranks, same order, same sizes.
///
/// Sums have one order: for each element a binary tree over the ranks, ((0+1)+(2+3))+…, in the type of the data for
/// f32, f64, i64, i32 and in fp32 for bf16 and f16. So a sum has the same bits on all ranks, in each call, and whatever
/// the collective is called: all_reduce ≡ reduce_scatter + all_gather.
///
/// Arrays are partitioned in place: `whole` has partition.size() logical elements, and rank r's part of it is
/// partition.shard(r). Work given to the lane before the call is done before the collective reads the array.
class Communicator {
public:
  virtual ~Communicator() = default;
  Communicator() = default;
  Communicator(Communicator const&) = delete;
  Communicator& operator=(Communicator const&) = delete;

  virtual int rank() const = 0;
  virtual int size() const = 0;
  /// "self", "MPI (MPICH 4.0.2)"
  virtual std::string description() const = 0;

  /// In: own shard of `whole` holds this rank's part. Out: all shards.
  virtual Pending all_gather(Lane const& lane, Span whole, Partition const& partition, Traffic purpose) = 0;
  /// In: `whole` holds this rank's addends. Out: own shard holds the sum over ranks, the rest is unspecified.
  virtual Pending reduce_scatter(Lane const& lane, Span whole, Partition const& partition, Traffic purpose) = 0;
  /// In: `whole` holds this rank's addends. Out: the sums.
  virtual Pending all_reduce(Lane const& lane, Span whole, Partition const& partition, Traffic purpose) = 0;
  /// Out: what `root` has in `data`.
  virtual Pending broadcast(Lane const& lane, Span data, int root, Traffic purpose) = 0;
  /// No rank leaves before all have come.
  virtual void barrier() = 0;
  /// Sends and receives messages between single ranks, and returns when all have left and come. Each has its like on
  /// the other side, of as many bytes; those of one rank to another meet in the order of the lists, over all calls. A
  /// call starts them all before it waits, so the order of ranks in the lists is free. Counted as bytes of control.
  virtual void exchange(std::span<Outgoing const> sends, std::span<Incoming const> receives) = 0;

  /// Small host arrays, at once: every rank gets the sums. Counted, like all that follows, as bytes of control.
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
  TrafficLedger traffic_;
};

} // namespace kozero
