#pragma once
#include "core/event.hpp"
#include "optim/adamw.hpp"
#include "zero/grad_store.hpp"
#include "zero/link.hpp"
#include "zero/optimizer_state.hpp"
#include "zero/param_store.hpp"

#include <array>
#include <optional>
#include <vector>

namespace kozero {

/// The optimizer's work on the state that lives on the host, and the way of its results to the device. It goes over the
/// pieces in tiles. At once: a tile's parameters, in the compute type, are copied up while the next one is computed.
///
///     update.run(scalars, grads, params);                    // reads the present gradients
///
/// Delayed: whoever launches work on the device lets the host do some tiles in between; the results wait in pinned
/// memory of their own, as the device still computes with the parameters before.
///
///     update.begin(scalars);                                 // reads former gradients
///     update.advance(grads);  …                              // one more tile
///     update.land(lane, grads, params);                      // what is left, then all of it to the device
///
/// There is no second thread: work on the device runs by itself once it is launched (ADR 16).
template <class T>
class HostUpdate {
public:
  HostUpdate(Plan const& plan, OptimizerState const& state, Ledger& ledger, LinkTraffic& traffic);

  /// Parameters from the master as it is.
  void publish_master(Lane const& lane, ParamStore<T>& params);
  /// What the lane gets from now on has the new parameters.
  void run(Lane const& lane, AdamWScalars const& scalars, GradStore const& grads, ParamStore<T>& params);

  void begin(AdamWScalars const& scalars);
  bool under_way() const { return scalars_.has_value(); }
  void advance(GradStore const& grads);
  void land(Lane const& lane, GradStore const& grads, ParamStore<T>& params);

  /// Tiles of the update under way that are not done.
  std::int64_t left() const { return static_cast<std::int64_t>(tiles_.size() - next_); }

private:
  struct Tile {
    int piece = 0;          // of OptimizerState::pieces()
    std::int64_t begin = 0; // in the piece
    std::int64_t count = 0;
  };

  template <class Produce>
  void stream(Lane const& lane, ParamStore<T>& params, Produce const& produce);
  void compute(Tile const& tile, AdamWScalars const& scalars, void const* gradient, DType type, T* out) const;

  OptimizerState const& state_;
  LinkTraffic& traffic_;
  std::vector<Tile> tiles_;
  struct Staging {
    PinnedBuffer<T> memory;
    Event copied;
  };
  std::array<Staging, 2> staging_;
  LazyLane up_{"parameters up"};
  std::vector<PinnedBuffer<T>> late_; // with delayed updates, by piece
  Event late_copied_;
  std::optional<AdamWScalars> scalars_; // of the delayed update under way
  std::size_t next_ = 0;                // its next tile
};

} // namespace kozero
