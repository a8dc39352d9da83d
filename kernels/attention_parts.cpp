#include "kernels/attention_parts.hpp"

#include "core/error.hpp"
#include "core/format.hpp"

#include <algorithm>
#include <numeric>

namespace kozero {

namespace {

constexpr std::int64_t spare = std::int64_t{16} << 20; // bytes, for what a library keeps beside its arrays

std::int64_t parts_of(std::int64_t whole, std::int64_t size) { return (whole + size - 1) / size; }
std::int64_t rounded_up(std::int64_t value, std::int64_t to) { return parts_of(value, to) * to; }

// Of `whole`, which is cut into as few pieces of at most `most` as will do: as alike as can be, each but the last a
// multiple of `step`.
std::int64_t even_size(std::int64_t whole, std::int64_t most, std::int64_t step) {
  if (whole <= most) return whole;
  return rounded_up(parts_of(whole, parts_of(whole, most / step * step)), step);
}

// So many things of `size` fp32 values each begin at a multiple of 16 bytes.
std::int64_t aligned_step(std::int64_t size) { return 4 / std::gcd(std::int64_t{4}, size); }

void require_one_head(std::int64_t one_head, std::int64_t bound, std::int64_t context) {
  if (one_head <= bound) return;
  throw InputError(fmt::format(
      "model.context: attention over {} tokens takes {} of device memory for each head in its backward pass, above the "
      "{} that it may take (cuDNN keeps the products of all pairs of tokens where its sums must have an order); make "
      "the context shorter, set precision.compute: fp32, or model.attention: tiles, which takes any",
      context, format_bytes(one_head), format_bytes(bound)));
}

} // namespace

std::int64_t backward_workspace_bytes(AttentionCut const& part, std::int64_t context, std::int64_t head_width) {
  std::int64_t const pairs = rounded_up(context, 64) * rounded_up(context, 128) * 2;
  std::int64_t const rows = context * (1 + head_width) * static_cast<std::int64_t>(sizeof(float));
  return part.windows * part.heads * (pairs + rows) + spare;
}

std::int64_t forward_workspace_bytes(AttentionShape const& shape) {
  return shape.batch * shape.heads * shape.context * static_cast<std::int64_t>(sizeof(float)) + spare;
}

AttentionCut cut_attention(AttentionShape const& shape, std::int64_t head_width, std::int64_t bound) {
  if (shape.batch * shape.heads == 0) return {shape.batch, shape.heads};
  std::int64_t const one_head = backward_workspace_bytes({1, 1}, shape.context, head_width);
  require_one_head(one_head, bound, shape.context);
  std::int64_t const heads = (bound - spare) / (one_head - spare);
  std::int64_t const windows = heads / shape.heads;
  std::int64_t const step = aligned_step(shape.heads * shape.context);
  if (windows >= std::min(step, shape.batch)) return {even_size(shape.batch, windows, step), shape.heads};
  if (aligned_step(shape.context) > 1) {
    throw InputError(
        fmt::format("model.context: attention over {} tokens is to be worked on in parts of some heads, so "
                    "that it takes no more than {} of device memory (each part must begin at a multiple "
                    "of 16 bytes); make the context a multiple of 4",
                    shape.context, format_bytes(bound)));
  }
  return {1, even_size(shape.heads, heads, 1)};
}

std::vector<AttentionPart> attention_parts(AttentionShape const& shape, AttentionCut const& cut) {
  std::vector<AttentionPart> parts;
  for (std::int64_t window = 0; window < shape.batch; window += cut.windows) {
    std::int64_t const windows = std::min(cut.windows, shape.batch - window);
    for (std::int64_t head = 0; head < shape.heads; head += cut.heads) {
      parts.push_back({window, windows, head, std::min(cut.heads, shape.heads - head)});
    }
  }
  return parts;
}

PartOffsets offsets_of(AttentionPart const& part, AttentionShape const& shape, std::int64_t head_width) {
  std::int64_t const row = part.first_window * shape.context;
  std::int64_t const width = shape.heads * head_width;
  std::int64_t const column = part.first_head * head_width;
  return {row * 3 * width + column, row * width + column,
          (part.first_window * shape.heads + part.first_head) * shape.context};
}

} // namespace kozero
