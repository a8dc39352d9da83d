#pragma once
// Causal self-attention without the [T,T] matrix: tiles and a running softmax (Dao et al., FlashAttention, 2022;
// Milakov and Gimelshein, Online normalizer calculation for softmax, 2018).

#include "core/dtype.hpp"
#include "core/lane.hpp"
#include "core/ledger.hpp"
#include "core/views.hpp"

#include <memory>
#include <string>

namespace kozero {

struct AttentionShape {
  std::int64_t batch = 0;   // B
  std::int64_t context = 0; // T
  std::int64_t heads = 0;   // H
};

/// Those that a model will want.
enum class AttentionPasses { forward, both };

class GraphAttention;
struct AttentionLibraryLimits;

/// By our own tile kernel, or by the graphs of a library.
enum class AttentionWay { tiles, graphs };

/// Those that may be taken.
enum class AttentionWays { all, tiles };

struct AttentionChoice {
  AttentionWay way = AttentionWay::tiles;
  std::string text = {}; // for people, with the reason: "tile kernel (…)"
};

/// Which of these ways training takes with heads of head_width columns in elements of that type. It follows from what
/// is given and from the build alone, so that all ranks choose alike and a plan knows. InputError where a library is to
/// be taken and the shape is too large for it.
AttentionChoice choose_attention(AttentionShape const& shape, std::int64_t head_width, DType type, AttentionWays ways);
/// The same with another library, or none (null).
AttentionChoice choose_attention(AttentionShape const& shape, std::int64_t head_width, DType type, AttentionWays ways,
                                 AttentionLibraryLimits const* library);

/// Attention as the layers of a model have it, by the way of choose_attention. They share one, as they run one after
/// another.
///
///     Attention<bf16> const attention({B, T, H}, D, AttentionWays::all, AttentionPasses::both, ledger);
///     attention.forward(lane, out, logsumexp, qkv);
template <class T>
class Attention {
public:
  Attention(AttentionShape const& shape, std::int64_t head_width, AttentionWays ways, AttentionPasses passes,
            Ledger& ledger);
  ~Attention();

  /// As attention_forward.
  void forward(Lane const& lane, Mat<T> out, Vec<float> logsumexp, ConstMat<T> qkv) const;
  /// As attention_backward.
  void backward(Lane const& lane, Mat<T> dqkv, ConstMat<T> dout, ConstMat<T> out, Vec<float const> logsumexp,
                ConstMat<T> qkv) const;

private:
  AttentionShape shape_;
  std::unique_ptr<GraphAttention const> graphs_; // null: tiles
  DeviceBuffer<float> delta_;                    // of tiles, [B·H·T]
};

/// The tile kernel: out [N,C] = softmax(q kᵀ / √D, causal) v for qkv [N,3C]: q, k, v side by side, head h in columns
/// h·D … h·D+D of each. logsumexp [B·H·T] is kept for the backward pass.
template <class T>
void attention_forward(Lane const& lane, AttentionShape const& shape, Mat<T> out, Vec<float> logsumexp,
                       ConstMat<T> qkv);

/// dqkv [N,3C] (overwritten) from dout [N,C]. delta [B·H·T] is scratch: Σ_d dout · out.
template <class T>
void attention_backward(Lane const& lane, AttentionShape const& shape, Mat<T> dqkv, Vec<float> delta, ConstMat<T> dout,
                        ConstMat<T> out, Vec<float const> logsumexp, ConstMat<T> qkv);

} // namespace kozero
