#pragma once
#include "core/error.hpp"
#include "core/lane.hpp"
#include "core/views.hpp"
#include "kernels/embedding.hpp"
#include "layout/block_layout.hpp"

#include <span>
#include <vector>

namespace kozero {

/// The tokens of one micro-batch, in device memory. N = B·T rows.
struct MicroBatch {
  Vec<std::int32_t const> tokens;  // [N]
  Vec<std::int32_t const> targets; // [N], negative: no loss
  TokenGroups groups;              // of `tokens`; only the backward pass needs them
};

/// The flat blocks that a unit works on, its own first; see UnitUses.
template <class T>
using Params = std::span<Vec<T const> const>;
using Grads = std::span<Vec<float> const>;

/// A piece of the model that runs as one. Its activations are its own; what flows between units (the residual stream
/// forward, its gradient backward) are the Views that it was built with.
template <class T>
class Unit {
public:
  virtual ~Unit() = default;
  virtual void forward(Lane const& lane, Params<T> params, MicroBatch const& batch) = 0;
  /// Adds to the gradients of `scale` · Σ losses.
  virtual void backward(Lane const& lane, Params<T> params, Grads grads, MicroBatch const& batch, float scale) = 0;
};

/// The last unit of a model, which makes logits and losses.
template <class T>
class Head : public Unit<T> {
public:
  /// Makes the losses of the micro-batch whose forward pass has run, without its gradients.
  virtual void loss(Lane const& lane, Params<T> params, MicroBatch const& batch) = 0;
  /// Of each row, [N]: those of the backward pass or of loss(), whichever ran last; 0 where there is no target.
  virtual Vec<float const> losses() const = 0;
  /// logits [R,Vp] of rows first … first+R of the micro-batch whose forward pass has run.
  virtual void logits(Lane const& lane, Params<T> params, Mat<float> logits, std::int64_t first) = 0;
};

/// Finds a unit's tensors in its block, by their order in the layout.
class BlockView {
public:
  explicit BlockView(BlockLayout const& layout) : tensors_(&layout.tensors()) {}
  template <class E>
  Mat<E> matrix(Vec<E> const& block, int tensor) const {
    auto const& placed = (*tensors_)[tensor];
    return make_mat(block.data() + placed.offset, placed.spec.shape[0], placed.spec.shape[1]);
  }
  template <class E>
  Vec<E> vector(Vec<E> const& block, int tensor) const {
    auto const& placed = (*tensors_)[tensor];
    return make_vec(block.data() + placed.offset, placed.spec.shape[0]);
  }
  /// Tensors first … last, which stand one after the other in the block, as one.
  template <class E>
  Mat<E> stacked_matrix(Vec<E> const& block, int first, int last) const {
    return make_mat(block.data() + (*tensors_)[first].offset, stacked_rows(first, last),
                    (*tensors_)[first].spec.shape[1]);
  }
  template <class E>
  Vec<E> stacked_vector(Vec<E> const& block, int first, int last) const {
    return make_vec(block.data() + (*tensors_)[first].offset, stacked_rows(first, last));
  }

private:
  std::int64_t stacked_rows(int first, int last) const {
    std::int64_t rows = 0;
    for (int tensor = first; tensor <= last; ++tensor) {
      KOZERO_ASSERT(tensor == first || (*tensors_)[tensor].offset == (*tensors_)[tensor - 1].interval().end);
      rows += (*tensors_)[tensor].spec.shape[0];
    }
    return rows;
  }

  std::vector<PlacedTensor> const* tensors_;
};

} // namespace kozero
