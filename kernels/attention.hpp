#pragma once
// Causal self-attention without the [T,T] matrix: tiles and a running softmax (Dao et al., FlashAttention, 2022;
// Milakov and Gimelshein, Online normalizer calculation for softmax, 2018).

#include "core/half.hpp"
#include "core/lane.hpp"
#include "core/views.hpp"

namespace kozero {

struct AttentionShape {
  std::int64_t batch = 0;   // B
  std::int64_t context = 0; // T
  std::int64_t heads = 0;   // H
};

/// out [N,C] = softmax(q kᵀ / √D, causal) v for qkv [N,3C]: q, k, v side by side, head h in columns h·D … h·D+D of
/// each. logsumexp [B·H·T] is kept for the backward pass.
template <class T>
void attention_forward(Lane const& lane, AttentionShape const& shape, Mat<T> out, Vec<float> logsumexp,
                       ConstMat<T> qkv);

/// dqkv [N,3C] (overwritten) from dout [N,C]. delta [B·H·T] is scratch: Σ_d dout · out.
template <class T>
void attention_backward(Lane const& lane, AttentionShape const& shape, Mat<T> dqkv, Vec<float> delta, ConstMat<T> dout,
                        ConstMat<T> out, Vec<float const> logsumexp, ConstMat<T> qkv);

} // namespace kozero
