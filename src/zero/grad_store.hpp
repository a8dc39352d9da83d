#pragma once
#include "comm/communicator.hpp"
#include "core/views.hpp"
#include "layout/block_layout.hpp"
#include "layout/unit_schedule.hpp"
#include "zero/plan.hpp"

#include <memory>
#include <vector>

namespace kozero {

/// Which micro-batch of an update this is.
struct MicroBatchPlace {
  bool first = true;
  bool last = true;
};

/// The gradients, fp32, flat blocks in device memory. A backward pass adds into block(); reduce() sums over ranks when
/// the plan says so.
class GradStore {
public:
  virtual ~GradStore() = default;

  virtual void begin(Lane const& lane, MicroBatchPlace place) = 0;
  /// Where the backward pass of the present micro-batch adds the gradients of a block: all its elements.
  virtual Vec<float> block(Lane const& lane, int number) = 0;
  /// The present micro-batch adds no more to that block.
  virtual void reduce(Lane const& lane, int number) = 0;
  /// After the last micro-batch: the sum over ranks and micro-batches of those elements of a block.
  virtual float* reduced(int number, Interval part) = 0;
};

std::unique_ptr<GradStore> make_grad_store(Plan const& plan, ModelLayout const& layout,
                                           std::vector<UnitUses> const& uses, Communicator& comm, Ledger& ledger);

} // namespace kozero
