#pragma once
#include "comm/communicator.hpp"
#include "core/views.hpp"
#include "layout/block_layout.hpp"
#include "layout/unit_schedule.hpp"
#include "zero/link.hpp"
#include "zero/plan.hpp"

#include <memory>
#include <vector>

namespace kozero {

/// Which micro-batch of an update this is.
struct MicroBatchPlace {
  std::int64_t number = 0;
  std::int64_t count = 1; // of the update
  bool first() const { return number == 0; }
  bool last() const { return number + 1 == count; }
};

/// The gradients, flat, by block. A backward pass adds fp32 into block(); reduce() sums over ranks when the plan says
/// so. What is kept and moved is fp32 too, or of the compute type, rounded once a micro-batch and once a sum.
class GradStore {
public:
  virtual ~GradStore() = default;

  virtual void begin(Lane const& lane, MicroBatchPlace place) = 0;
  /// Where the backward pass of the present micro-batch adds the gradients of a block: all its elements.
  virtual Vec<float> block(Lane const& lane, int number) = 0;
  /// The present micro-batch adds no more to that block: where the plan says so, its reduction over ranks begins.
  virtual void reduce(Lane const& lane, int number) = 0;
  /// After the last micro-batch: all that was reduced is in its place, for what the lane gets from now on; what goes to
  /// the host has come.
  virtual void wait(Lane const& lane) = 0;

  /// The type of reduced gradients.
  virtual DType type() const = 0;
  /// The sum over ranks and micro-batches of a piece of Plan::pieces, by its number, in device or pinned memory.
  virtual void* reduced(int piece) const = 0;
  /// With delayed updates: the present gradients become the former ones, to be read while the next batch is computed.
  virtual void turn() = 0;
  virtual void* former(int piece) const = 0;
};

/// `compute` is the type that gradients have where the plan keeps them as computed.
std::unique_ptr<GradStore> make_grad_store(Plan const& plan, DType compute, ModelLayout const& layout,
                                           std::vector<UnitUses> const& uses, Communicator& comm, Ledger& ledger,
                                           LinkTraffic& link);

} // namespace kozero
