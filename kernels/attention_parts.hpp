#pragma once
// How the backward pass of attention is cut where a library needs memory of its own for it: pure integers, so that a
// plan counts what a run will take, without a device.

#include "kernels/attention.hpp"

#include <cstdint>
#include <vector>

namespace kozero {

/// The most that attention takes of a device beside its arguments. The same on all ranks and at all stages, since
/// another cut may be another kernel, with other bits.
inline constexpr std::int64_t attention_workspace_bound = std::int64_t{1} << 30;

/// So many windows at once with all their heads; or one window and so many of its heads.
struct AttentionCut {
  std::int64_t windows = 0;
  std::int64_t heads = 0;
  friend bool operator==(AttentionCut const&, AttentionCut const&) = default;
};

/// What is worked on at once: `heads` from first_head on of `windows` from first_window on.
struct AttentionPart {
  std::int64_t first_window = 0;
  std::int64_t windows = 0;
  std::int64_t first_head = 0;
  std::int64_t heads = 0;
  AttentionCut size() const { return {windows, heads}; }
};

/// Where a part begins in the arrays of attention, in elements.
struct PartOffsets {
  std::int64_t qkv = 0;   // of q in [N,3C]; k and v begin C and 2C later
  std::int64_t out = 0;   // in [N,C]
  std::int64_t stats = 0; // in [B·H·T]
};

/// The memory of a backward pass of cuDNN in which sums have an order, at most: the products of all pairs of tokens in
/// 16 bits (windows · heads · ⌈T/64⌉ 64 · ⌈T/128⌉ 128; Hopper knows no other such way), the sums of dout · out, a
/// gradient of q in fp32, and a MiB for what else it keeps.
std::int64_t backward_workspace_bytes(AttentionCut const& part, std::int64_t context, std::int64_t head_width);
/// Of a forward pass, at most.
std::int64_t forward_workspace_bytes(AttentionShape const& shape);

/// Parts as large as the bound lets them be, and as alike as can be, whose statistics begin at multiples of 16 bytes.
/// InputError where a single head is above the bound, or heads must be parted whose T is not a multiple of 4.
AttentionCut cut_attention(AttentionShape const& shape, std::int64_t head_width, std::int64_t bound);

/// All of them, which cover each head of each window once.
std::vector<AttentionPart> attention_parts(AttentionShape const& shape, AttentionCut const& cut);

PartOffsets offsets_of(AttentionPart const& part, AttentionShape const& shape, std::int64_t head_width);

} // namespace kozero
