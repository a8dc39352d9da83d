#pragma once
// The output head and its cross-entropy, fused and in chunks of rows: the logits of a whole micro-batch never exist.

#include "core/half.hpp"
#include "core/lane.hpp"
#include "core/views.hpp"

namespace kozero {

/// How large a chunk may be: so many logits, but never less than so many rows.
struct HeadChunk {
  std::int64_t logits = 0;
  std::int64_t rows = 0; // a multiple of 16
};

inline constexpr HeadChunk host_head_chunk{std::int64_t{1} << 24, 16};
// Each chunk reads and writes the whole gradient of the weight, in fp32, and an accelerator multiplies well from some
// thousand rows on: 1 GiB in fp32 and half of it in 16 bits, for 50257 ids.
inline constexpr HeadChunk accelerator_head_chunk{std::int64_t{1} << 28, 4096};
// The emulated device keeps the host's: it has the host's memory, and its products.
inline constexpr HeadChunk head_chunk = KOZERO_HAS_ACCELERATOR ? accelerator_head_chunk : host_head_chunk;

/// Rows that are best worked on at once. Depends on shape and kind of device alone.
std::int64_t head_chunk_rows(std::int64_t n, std::int64_t vocabulary, HeadChunk const& chunk = head_chunk);

/// Memory of one chunk of R rows, which are worked on at once: of head_chunk_rows, for speed.
template <class T>
struct HeadScratch {
  Mat<float> logits; // [R,Vp]
  Mat<T> dlogits;    // [R,Vp]; for T = float this may be `logits` itself. head_loss does not use it
};

/// losses [N] = -log softmax(x [N,C] · w [V,C]ᵀ)[target], 0 where the target is negative.
template <class T>
void head_loss(Lane const& lane, Vec<float> losses, HeadScratch<T> const& scratch, ConstMat<T> x, ConstMat<T> w,
               Vec<std::int32_t const> targets);

/// The losses as above and the gradients of scale · Σ losses: dx [N,C] overwritten, dw [V,C] added to. Rows whose
/// target is negative add nothing and get a dx of zero.
template <class T>
void head_loss_and_gradient(Lane const& lane, Vec<float> losses, Mat<T> dx, Mat<float> dw,
                            HeadScratch<T> const& scratch, ConstMat<T> x, ConstMat<T> w,
                            Vec<std::int32_t const> targets, float scale);

/// logits [N,Vp] = x [N,C] · w [V,C]ᵀ; columns from V on are left alone.
template <class T>
void head_logits(Lane const& lane, Mat<float> logits, ConstMat<T> x, ConstMat<T> w);

} // namespace kozero
