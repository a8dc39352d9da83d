#pragma once
#include "core/event.hpp"
#include "core/ledger.hpp"
#include "zero/link.hpp"
#include "zero/placed_buffer.hpp"
#include "zero/plan.hpp"

#include <array>
#include <vector>

namespace kozero {

/// The reduced gradients of this rank's pieces, of type G, where the optimizer will read them: device memory, or pinned
/// host memory for pieces that live on the host. They arrive piece by piece as reductions of units end; copies to the
/// host have a lane of their own and run beside the computation.
///
/// With delayed updates there are two sets of arrays: one is filled while the optimizer reads the other.
template <class G>
class GradShards {
public:
  /// Sums over all micro-batches, of blocks that stay whole on the device: only pieces that live on the host have an
  /// array, and with delayed updates all. Or sums of some micro-batches, which stay nowhere else: all have.
  enum class Deliveries { one, several };

  /// `pieces` are those of Plan::pieces.
  GradShards(Plan const& plan, std::vector<Piece> pieces, Deliveries deliveries, Ledger& ledger, LinkTraffic& traffic);

  /// A whole block in device memory, of which this rank's pieces are reduced: they go to their arrays, or are added to
  /// what is there, as the step says. `block` may be overwritten by what the lane gets after release().
  void deliver(Lane const& lane, int number, G const* block, SumStep step);
  bool go_to_host() const { return on_host_; } // some of them
  void release(Lane const& lane) const { order_after(lane, down_); }
  /// Waits until all that was delivered to the host is there.
  void wait() const;

  /// The present gradients become the former ones, where there are two sets.
  void turn() { present_ = static_cast<int>(arrays_.size()) - 1 - present_; }
  bool has_array(int piece) const { return has_array_[piece]; }
  G* present(int piece) const { return arrays_[present_][piece].data(); }
  G* former(int piece) const { return arrays_[arrays_.size() - 1 - present_][piece].data(); }

private:
  void deliver_piece(Lane const& lane, int piece, G const* reduced, SumStep step);
  G* sum(int level, int piece) const { return level == 0 ? present(piece) : partial_[level - 1][piece].data(); }
  void set(Lane const& lane, int piece, int level, G const* reduced);
  void add_on_host(int piece, G const* reduced, SumStep step);
  template <class AnyLane>
  void add_part(AnyLane const& lane, int piece, Interval part, G const* reduced, SumStep step) const;

  std::vector<Piece> pieces_;
  std::vector<bool> has_array_; // of each piece
  LinkTraffic& traffic_;
  LazyLane down_{"gradients down"};
  using Arrays = std::vector<PlacedBuffer<G>>; // by piece
  Arrays make_arrays(char const* label, Ledger& ledger) const;
  std::vector<Arrays> arrays_;  // by set; the first partial sum is in the present one
  std::vector<Arrays> partial_; // further partial sums
  struct Arriving {
    PinnedBuffer<G> memory;
    Event came;
  };
  std::array<Arriving, 2> arriving_; // parts of a further micro-batch's piece, before they are added
  int present_ = 0;
  bool on_host_ = false; // whether anything goes there
};

} // namespace kozero
