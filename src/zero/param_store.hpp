#pragma once
#include "comm/collectives.hpp"
#include "core/views.hpp"
#include "layout/block_layout.hpp"
#include "layout/unit_schedule.hpp"
#include "zero/plan.hpp"

#include <memory>
#include <type_traits>
#include <vector>

namespace kozero {

/// The model's parameters in the compute type T (float, bf16 or fp16): what the forward and backward passes read.
/// Blocks are flat, in device memory. In 16 bits they are a rounded copy of the fp32 master; in fp32 those of a piece
/// on the device are the master itself (ADR 19), those of a piece on the host a copy.
template <class T>
class ParamStore {
public:
  static constexpr bool is_master = std::is_same_v<T, float>; // of device pieces

  virtual ~ParamStore() = default;

  /// A micro-batch begins; `visits` is the order in which it will ask.
  virtual void begin(Visits const& visits) = 0;
  /// Makes the blocks of `visit`, the next one, whole, and starts on those of the visit after it.
  virtual void fetch(Lane const& lane, Visit visit) = 0;
  /// A block that the present visit reads: all its elements.
  virtual Vec<T const> block(int number) const = 0;
  /// Where the optimizer's results of a piece go.
  virtual T* updated(Piece const& piece) = 0;
  /// Before the optimizer writes: what the publication before has begun is done.
  virtual void settle(Lane const& lane) = 0;
  /// Every rank's updated elements are written: begins to make them known where the plan wants them. fetch() waits for
  /// the blocks that it is asked for.
  virtual void publish(Lane const& lane) = 0;
};

/// Whole blocks on every rank, gathered in publish() where the optimizer is sharded; or one shard a rank, gathered a
/// unit at a time into a ring of two slots: as the plan says.
template <class T>
std::unique_ptr<ParamStore<T>> make_param_store(Plan const& plan, ModelLayout const& layout,
                                                std::vector<UnitUses> const& uses, Collectives& collectives,
                                                Ledger& ledger);

} // namespace kozero
