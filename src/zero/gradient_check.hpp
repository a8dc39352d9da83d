#pragma once
#include "comm/joined_sum.hpp"
#include "kernels/squares.hpp"
#include "layout/block_layout.hpp"
#include "zero/grad_store.hpp"
#include "zero/plan.hpp"

#include <cstdint>
#include <string>
#include <vector>

namespace kozero {

/// Looks at an update's whole gradient: its norm, and where it is not finite. Each rank adds up what it answers for,
/// device pieces on the device, of which one array of sums comes back (doc/numerics.md: Norm).
class GradientCheck {
public:
  GradientCheck(Plan const& plan, ModelLayout const& layout, Ranks& ranks, Ledger& ledger);

  /// √(Σ g²) of the reduced gradients, over all ranks. Waits for them. Collective.
  double norm(Lane const& lane, GradStore& grads);
  /// The name of the first tensor with an Inf or NaN, of which there must be one. Collective.
  std::string first_bad_tensor(Lane const& lane, GradStore const& grads);

private:
  /// What a rank answers for of a piece of Plan::pieces.
  struct Part {
    int number = 0; // of the piece
    int block = 0;
    Space space = Space::device;
    Interval wanted;         // of the block
    std::int64_t offset = 0; // of its first element in the piece
    std::int64_t sums = 0;   // where its sums are
  };

  template <class Work>
  static void with_gradient(GradStore const& grads, Part const& part, Work const& work);
  std::int64_t first_non_finite(Lane const& lane, GradStore const& grads);

  ModelLayout const& layout_;
  Ranks& ranks_;
  std::vector<Part> parts_;
  DeviceBuffer<double> device_sums_;
  PinnedBuffer<double> collected_; // device_sums_, on the host
  HostBuffer<double> host_sums_;
  DeviceBuffer<std::int64_t> first_bad_; // [1]
  std::vector<SquareSum> blocks_;        // Σ g² of each
  SumJoiner<square_columns> joiner_;
  std::vector<double> squares_; // the same in one
};

} // namespace kozero
