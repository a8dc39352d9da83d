#pragma once
#include "comm/collectives.hpp"
#include "comm/mpi_calls.hpp"
#include "core/event.hpp"

#include <cstdint>
#include <optional>
#include <vector>

namespace kozero {

/// What a collective does with an array of which every rank owns a part.
struct Exchange {
  enum class Way {
    to_owners, // each rank's elements of a part go to its owner, who adds them up
    to_all,    // what the owner has of its part goes to all
    both       // one after the other
  };
  Way way = Way::to_all;
  Span whole;
  Partition partition{0, 1};
  std::optional<int> root = {}; // who owns all of it, where parts are not the partition's

  Interval part(int rank) const {
    if (!root) return partition.shard(rank);
    return rank == *root ? Interval{0, partition.size()} : Interval{};
  }

  bool sums() const { return way != Way::to_all; }
  bool tells() const { return way != Way::to_owners; }
};

/// Memory that the rounds of an exchange pass through: a piece for every rank in each array.
struct RoundMemory {
  unsigned char* incoming = nullptr; // addends; none where nothing is summed
  bool incoming_on_device = false;   // where MPI reaches the device's memory and the host does not: a kernel sums
  unsigned char* mirror = nullptr;   // of device memory, pinned; none where MPI and the host reach the array itself
  std::int64_t piece_bytes = 0;
};

/// Every other round of an exchange, one after another, without ever waiting. Round k moves the k-th run of
/// piece_bytes of each part. The other rounds may be under way at the same time with another memory and another tag.
///
///     Rounds rounds(communicator, copies);
///     rounds.begin(exchange, memory, tag, 0);
///     while (!rounds.done()) arrived += rounds.advance();
class Rounds {
public:
  /// `copies` is the lane of copies between device memory and the mirror; it and the communicator must outlive this.
  Rounds(MpiRanks::Communicator const& ranks, Lane const& copies) : ranks_(ranks), copies_(copies) {}

  /// Another exchange, when the one before is done.
  void begin(Exchange const& exchange, RoundMemory const& memory, int tag, std::int64_t first_round);

  /// Gets on until something must come or leave first. What it posts itself it does not look at before the next call.
  /// Returns the bytes of messages that have come.
  std::int64_t advance();
  /// Nothing of the exchange is left to other ranks. Copies up to the device may still be with the lane.
  bool done() const { return step_ == Step::done; }

private:
  enum class Step { begin, lowering, summing, adding, telling, end, done };
  enum class Outcome { on, must_wait };

  Outcome begin_round();
  Outcome lower();
  Outcome sum();
  Outcome add_up();
  Outcome tell();
  Outcome end();
  void post_addends();
  void post_results();
  bool messages_complete();

  Interval part(int rank) const;
  std::int64_t bytes_of(std::int64_t elements) const { return elements * size_of(exchange_.whole.type); }
  unsigned char* in_array(int rank) const;
  unsigned char* piece(unsigned char* memory, int rank) const { return memory + rank * memory_.piece_bytes; }
  /// Where the host finds a rank's part of this round.
  unsigned char* reached(int rank) const;
  void receive(int from, unsigned char* to, std::int64_t elements);
  void send(int to, unsigned char* from, std::int64_t elements);
  template <class Work>
  void for_each_other(Work const& work) const;

  MpiRanks::Communicator const& ranks_;
  Lane const& copies_;
  Exchange exchange_;
  RoundMemory memory_;
  int tag_ = 0;
  std::int64_t length_ = 0; // elements of a piece
  std::int64_t round_ = 0;
  Step step_ = Step::done;
  Event lowered_;
  Event added_;
  std::vector<MPI_Request> receives_, sends_;
  std::vector<void const*> addends_;
  std::int64_t coming_bytes_ = 0; // of receives_
  std::int64_t arrived_bytes_ = 0;
};

} // namespace kozero
