#include "kernels/graph_attention.hpp"

#include "core/error.hpp"

#include <algorithm>

namespace kozero {

namespace {

constexpr std::int64_t workspace_alignment = 256; // as devices allocate; Kokkos puts 128 bytes of its own in front

std::int64_t workspace_of(AttentionShape const& shape, std::int64_t head_width, AttentionPasses passes,
                          std::int64_t bound) {
  std::int64_t const forward = forward_workspace_bytes(shape);
  if (passes == AttentionPasses::forward) return forward;
  AttentionCut const cut = cut_attention(shape, head_width, bound);
  return std::max(forward, backward_workspace_bytes(cut, shape.context, head_width));
}

} // namespace

GraphAttention::GraphAttention(AttentionShape const& shape, std::int64_t head_width, DType type, AttentionPasses passes,
                               std::int64_t bound, Ledger& ledger, std::function<AttentionLibrary&()> const& library)
    : shape_(shape), head_width_(head_width), type_(type),
      workspace_(ledger, Category::workspace, "attention.workspace", workspace_of(shape, head_width, passes, bound),
                 DeviceBuffer<unsigned char>::Init::none) {
  if (!ledger.allocates() || shape.batch == 0) return;
  auto const jobs = [&](AttentionPass pass, AttentionCut const& cut) {
    std::vector<Job> result;
    for (auto const& part : attention_parts(shape, cut)) {
      result.push_back({part, build(library(), attention_graph(pass, part.size(), shape, head_width, type))});
    }
    return result;
  };
  forward_ = jobs(AttentionPass::forward, {shape.batch, shape.heads});
  if (passes == AttentionPasses::both) {
    backward_ = jobs(AttentionPass::backward, cut_attention(shape, head_width, bound));
  }
}

std::shared_ptr<BuiltAttention const> GraphAttention::build(AttentionLibrary& library,
                                                            AttentionGraph const& graph) const {
  auto built = library.build(graph);
  std::int64_t const planned = workspace_.size() - workspace_alignment;
  KOZERO_REQUIRE(built->workspace_bytes() <= planned,
                 "attention's library wants {} bytes of workspace and {} were planned (this version of it works in "
                 "another way than is known of it); take another version, or set model.attention: tiles",
                 built->workspace_bytes(), planned);
  return built;
}

void GraphAttention::run(Lane const& lane, char const* label, Job const& job, Arrays const& arrays) const {
  using enum AttentionTensor;
  std::int64_t const width = shape_.heads * head_width_;
  PartOffsets const at = offsets_of(job.part, shape_, head_width_);
  auto const place = [&](void const* array, std::int64_t element, std::int64_t size) {
    return array == nullptr ? nullptr : static_cast<char*>(const_cast<void*>(array)) + element * size;
  };
  PerTensor<void*> data;
  for (int i = 0; i < 3; ++i) {
    auto const nth = [i](AttentionTensor first) { return static_cast<AttentionTensor>(static_cast<int>(first) + i); };
    data[nth(q)] = place(arrays.qkv, at.qkv + i * width, size_of(type_));
    data[nth(dq)] = place(arrays.dqkv, at.qkv + i * width, size_of(type_));
  }
  data[out] = place(arrays.out, at.out, size_of(type_));
  data[dout] = place(arrays.dout, at.out, size_of(type_));
  data[stats] = place(arrays.stats, at.stats, size_of(DType::f32));

  auto const rows = [&](void const* array, std::int64_t columns, DType type) {
    std::int64_t const row_bytes = columns * size_of(type);
    std::int64_t const row = job.part.first_window * shape_.context;
    std::int64_t const count = array == nullptr ? 0 : job.part.windows * shape_.context;
    return Touched{place(array, row, row_bytes), count * row_bytes};
  };
  Touched const qkv_rows = rows(arrays.qkv, 3 * width, type_), out_rows = rows(arrays.out, width, type_);
  Touched const stats_rows = rows(arrays.stats, shape_.heads, DType::f32);
  Touched const all_workspace{workspace_.data(), workspace_.size()};
  auto const address = reinterpret_cast<std::uintptr_t>(workspace_.data());
  unsigned char* const workspace =
      workspace_.data() + (workspace_alignment - address % workspace_alignment) % workspace_alignment;
  auto const call = [graph = job.graph, data, workspace](Lane::Exec const& exec) { graph->run(exec, data, workspace); };
  if (arrays.dqkv == nullptr) {
    enqueue(lane, label, {qkv_rows}, {out_rows, stats_rows, all_workspace}, call);
  } else {
    enqueue(lane, label, {qkv_rows, out_rows, stats_rows, rows(arrays.dout, width, type_)},
            {rows(arrays.dqkv, 3 * width, type_), all_workspace}, call);
  }
}

void GraphAttention::forward(Lane const& lane, void* out, float* stats, void const* qkv) const {
  for (auto const& job : forward_) {
    run(lane, "kozero::attention::forward", job, {.qkv = qkv, .out = out, .stats = stats});
  }
}

void GraphAttention::backward(Lane const& lane, void* dqkv, void const* dout, void const* out, float const* stats,
                              void const* qkv) const {
  for (auto const& job : backward_) {
    run(lane, "kozero::attention::backward", job, {.qkv = qkv, .out = out, .stats = stats, .dout = dout, .dqkv = dqkv});
  }
}

} // namespace kozero
