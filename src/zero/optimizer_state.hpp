#pragma once
#include "core/lane.hpp"
#include "core/ledger.hpp"
#include "layout/block_layout.hpp"
#include "zero/held_state.hpp"
#include "zero/placed_buffer.hpp"
#include "zero/plan.hpp"

#include <functional>
#include <vector>

namespace kozero {

/// The fp32 truth: master parameters and Adam's moments of what this rank updates, piece by piece, on the device or the
/// host as the plan says. Where the parameters of a piece are fp32 in device memory, they are its master, and this has
/// no array of its own for it (ADR 19).
class OptimizerState {
public:
  /// Flat arrays of piece.interval.size() elements in the memory of piece.space.
  struct PieceState {
    Piece piece;
    std::int64_t decay_count = 0; // elements before the block's decay_end
    PlacedBuffer<float> master, m, v;
    float* data(StateKind kind) const; // null for the gradient, which is not here
  };

  /// The parameters of a device piece, where they are fp32.
  using MasterOf = std::function<float*(Piece const&)>;

  /// `master_of` is empty where parameters are 16-bit; what it gives outlives this.
  OptimizerState(Plan const& plan, ModelLayout const& layout, MasterOf const& master_of, Ledger& ledger);

  /// Master from (seed, tensor, element); moments zero.
  void initialise(Lane const& lane, ModelLayout const& layout, std::int64_t seed);
  std::vector<HeldState> held() const;

  std::vector<PieceState> const& pieces() const { return pieces_; }

private:
  std::vector<PieceState> pieces_;
};

} // namespace kozero
