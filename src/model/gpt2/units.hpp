#pragma once
#include "config/config.hpp"
#include "core/ledger.hpp"
#include "kernels/attention.hpp"
#include "kernels/head.hpp"
#include "model/unit.hpp"

#include <memory>

namespace kozero {

/// Sizes that all units of a model share.
struct Gpt2Sizes {
  std::int64_t batch = 0;                                   // B
  std::int64_t context = 0;                                 // T
  std::int64_t width = 0;                                   // C
  std::int64_t heads = 0;                                   // H
  std::int64_t vocabulary = 0;                              // V
  std::int64_t rows() const { return batch * context; }     // N
  std::int64_t head_width() const { return width / heads; } // D
  AttentionShape attention() const { return {batch, context, heads}; }
};

/// x = wte[token] + wpe[position].
template <class T>
class Gpt2Embedding final : public Unit<T> {
public:
  /// x: the residual stream that it starts; d: the gradient of it, both [N,C].
  Gpt2Embedding(BlockLayout const& layout, Mat<T> x, Mat<T> d) : view_(layout), x_(x), d_(d) {}
  void forward(Lane const& lane, Params<T> params, MicroBatch const& batch) override;
  void backward(Lane const& lane, Params<T> params, Grads grads, MicroBatch const& batch, float scale) override;

private:
  BlockView view_;
  Mat<T> x_, d_;
};

/// What one layer keeps from its forward pass for its backward pass.
template <class T>
struct Gpt2LayerFrame {
  Gpt2LayerFrame(Gpt2Sizes const& shape, Category category, std::string const& label, Ledger& ledger);
  DeviceBuffer<T> ln_1, qkv, attention, middle, ln_2, fc, gelu; // [N,C] [N,3C] [N,C] [N,C] [N,C] [N,4C] [N,4C]
  DeviceBuffer<float> mean_1, rstd_1, mean_2, rstd_2;           // [N]
  DeviceBuffer<float> logsumexp;                                // [B·H·T]
};

/// What a backward pass needs while one unit runs; all units share it.
template <class T>
struct Gpt2Scratch {
  Gpt2Scratch(Gpt2Sizes const& shape, Ledger& ledger);
  DeviceBuffer<T> wide;     // [N,4C], or [N,3C]
  DeviceBuffer<T> narrow;   // [N,C]
  DeviceBuffer<float> sums; // of add_column_sums
  Vec<float> for_sums() const { return make_vec(sums.data(), sums.size()); }
};

/// x' = m + mlp(norm(m)), m = x + attention(norm(x)).
template <class T>
class Gpt2Layer final : public Unit<T> {
public:
  /// in, out: the residual stream before and after; d in: the gradient of `out`, out: of `in`. Layers that share one
  /// frame run their forward pass again before their backward pass (`recompute`).
  Gpt2Layer(BlockLayout const& layout, Gpt2Sizes const& shape, Recompute recompute,
            std::shared_ptr<Gpt2LayerFrame<T>> frame, std::shared_ptr<Attention<T> const> attention,
            std::shared_ptr<Gpt2Scratch<T>> scratch, Mat<T> in, Mat<T> out, Mat<T> d);
  void forward(Lane const& lane, Params<T> params, MicroBatch const& batch) override;
  void backward(Lane const& lane, Params<T> params, Grads grads, MicroBatch const& batch, float scale) override;

private:
  void forward_to_gelu(Lane const& lane, Vec<T const> const& block);

  BlockView view_;
  Gpt2Sizes shape_;
  Recompute recompute_;
  std::shared_ptr<Gpt2LayerFrame<T>> frame_;
  std::shared_ptr<Attention<T> const> attention_;
  std::shared_ptr<Gpt2Scratch<T>> scratch_;
  Mat<T> in_, out_, d_;
};

/// loss = cross-entropy(norm(x) · Wᵀ), W the token embedding or a matrix of its own. Logits and loss are made in the
/// backward pass, chunk by chunk together with their gradient; evaluation asks for loss() instead.
template <class T>
class Gpt2Head final : public Head<T> {
public:
  Gpt2Head(BlockLayout const& layout, BlockLayout const& embedding, Gpt2Sizes const& shape, bool tied,
           std::shared_ptr<Gpt2Scratch<T>> scratch, Mat<T> x, Mat<T> d, Ledger& ledger);
  void forward(Lane const& lane, Params<T> params, MicroBatch const& batch) override;
  void backward(Lane const& lane, Params<T> params, Grads grads, MicroBatch const& batch, float scale) override;

  void loss(Lane const& lane, Params<T> params, MicroBatch const& batch) override;
  Vec<float const> losses() const override { return make_vec<float const>(losses_.data(), losses_.size()); }
  void logits(Lane const& lane, Params<T> params, Mat<float> logits, std::int64_t first) override;

private:
  Mat<T const> weight(Params<T> params) const;
  HeadScratch<T> chunk() const;

  BlockView view_, embedding_;
  Gpt2Sizes shape_;
  bool tied_;
  std::shared_ptr<Gpt2Scratch<T>> scratch_;
  Mat<T> x_, d_;
  DeviceBuffer<T> norm_;            // [N,C]
  DeviceBuffer<float> mean_, rstd_; // [N]
  DeviceBuffer<float> losses_;      // [N]
  DeviceBuffer<float> logits_;      // [R,Vp], a chunk of rows
  DeviceBuffer<T> dlogits_;         // [R,Vp], where T has 16 bits
};

} // namespace kozero
