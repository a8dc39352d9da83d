#pragma once
#include "comm/communicator.hpp"
#include "core/views.hpp"
#include "layout/block_layout.hpp"
#include "layout/unit_schedule.hpp"
#include "zero/plan.hpp"

#include <memory>
#include <vector>

namespace kozero {

/// The model's parameters in the compute type T (float, bf16 or fp16), a rounded copy of the fp32 master: what the
/// forward and backward passes read. Blocks are flat, in device memory.
template <class T>
class ParamStore {
public:
  virtual ~ParamStore() = default;

  /// A micro-batch begins; `visits` is the order in which it will ask.
  virtual void begin(std::vector<Visit> const& visits) = 0;
  /// Makes the blocks of `visit`, the next one, whole, and starts on those of the visit after it.
  virtual void fetch(Lane const& lane, Visit visit) = 0;
  /// A block that the present visit reads: all its elements.
  virtual Vec<T const> block(int number) const = 0;
  /// Where the optimizer's results of a piece go.
  virtual T* updated(Piece const& piece) = 0;
  /// Every rank's updated elements are written: makes them known where the plan wants them.
  virtual void publish(Lane const& lane) = 0;
};

/// Whole blocks on every rank, gathered in publish() where the optimizer is sharded; or one shard a rank, gathered a
/// unit at a time into a ring of two slots: as the plan says.
template <class T>
std::unique_ptr<ParamStore<T>> make_param_store(Plan const& plan, ModelLayout const& layout,
                                                std::vector<UnitUses> const& uses, Communicator& comm, Ledger& ledger);

} // namespace kozero
