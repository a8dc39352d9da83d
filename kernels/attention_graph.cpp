#include "kernels/attention_graph.hpp"

#include <cmath>

namespace kozero {

AttentionGraph attention_graph(AttentionPass pass, AttentionCut const& part, AttentionShape const& shape,
                               std::int64_t head_width, DType type) {
  using enum AttentionTensor;
  std::int64_t const width = shape.heads * head_width;
  auto const heads_of = [&](std::int64_t row_stride) {
    return TensorLayout{type,
                        {part.windows, part.heads, shape.context, head_width},
                        {shape.context * row_stride, head_width, row_stride, 1}};
  };
  AttentionGraph graph{.pass = pass, .scale = 1.0f / std::sqrt(static_cast<float>(head_width))};
  auto& tensors = graph.tensors;
  tensors[q] = tensors[k] = tensors[v] = heads_of(3 * width);
  tensors[out] = heads_of(width);
  // Without gaps, as cuDNN reads them before 9.26: a part has all heads of its windows, or is of one window.
  tensors[stats] = {
      DType::f32, {part.windows, part.heads, shape.context, 1}, {part.heads * shape.context, shape.context, 1, 1}};
  if (pass == AttentionPass::backward) {
    tensors[dout] = tensors[out];
    tensors[dq] = tensors[dk] = tensors[dv] = tensors[q];
  }
  return graph;
}

} // namespace kozero
