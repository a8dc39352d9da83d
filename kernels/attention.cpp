#include "kernels/attention.hpp"

#include "core/format.hpp"
#include "kernels/graph_attention.hpp"

namespace kozero {

namespace {

// Why the library is not taken; nothing where it is.
std::optional<std::string> lack_of_library(AttentionShape const& shape, std::int64_t head_width, DType type,
                                           AttentionWays ways, AttentionLibraryLimits const* library) {
  if (library == nullptr) return runs_on_host<Lane> ? "the host's" : "built without cuDNN";
  if (ways == AttentionWays::tiles) return "model.attention is tiles";
  if (type == DType::f32) return fmt::format("{} takes bf16 and fp16, not fp32", library->name);
  if (head_width % 8 != 0) {
    return fmt::format("heads of {} columns are no multiple of 8, which {} takes", head_width, library->name);
  }
  if (head_width > library->widest_head) {
    return fmt::format("heads of {} columns are wider than the {} that {} takes here", head_width, library->widest_head,
                       library->name);
  }
  if (shape.context < 2) return fmt::format("{} takes no windows of one token", library->name);
  return std::nullopt;
}

std::string words_of_cut(AttentionShape const& shape, AttentionCut const& cut) {
  std::size_t const parts = attention_parts(shape, cut).size();
  if (parts <= 1) return "at once";
  return cut.heads < shape.heads ? fmt::format("in {} parts of up to {} heads", parts, cut.heads)
                                 : fmt::format("in {} parts of up to {} windows", parts, cut.windows);
}

} // namespace

AttentionChoice choose_attention(AttentionShape const& shape, std::int64_t head_width, DType type, AttentionWays ways,
                                 AttentionLibraryLimits const* library) {
  if (auto const lack = lack_of_library(shape, head_width, type, ways, library)) {
    return {AttentionWay::tiles, fmt::format("tile kernel ({})", *lack)};
  }
  AttentionCut const cut = cut_attention(shape, head_width, attention_workspace_bound);
  std::int64_t const bytes = backward_workspace_bytes(cut, shape.context, head_width);
  return {AttentionWay::graphs, fmt::format("{}, its sums in order; backward {}, workspace up to {}", library->name,
                                            words_of_cut(shape, cut), format_bytes(bytes))};
}

AttentionChoice choose_attention(AttentionShape const& shape, std::int64_t head_width, DType type, AttentionWays ways) {
  auto const library = attention_library_limits();
  return choose_attention(shape, head_width, type, ways, library ? &*library : nullptr);
}

template <class T>
Attention<T>::Attention(AttentionShape const& shape, std::int64_t head_width, AttentionWays ways,
                        AttentionPasses passes, Ledger& ledger)
    : shape_(shape) {
  auto const library = attention_library_limits();
  if (!lack_of_library(shape, head_width, dtype_of<T>, ways, library ? &*library : nullptr)) {
    graphs_ = std::make_unique<GraphAttention>(shape, head_width, dtype_of<T>, passes, attention_workspace_bound,
                                               ledger, attention_library);
  } else if (passes == AttentionPasses::both) {
    delta_ = {ledger, Category::activations, "attention.delta", shape.batch * shape.heads * shape.context,
              DeviceBuffer<float>::Init::none};
  }
}

template <class T>
Attention<T>::~Attention() = default;

template <class T>
void Attention<T>::forward(Lane const& lane, Mat<T> out, Vec<float> logsumexp, ConstMat<T> qkv) const {
  if (graphs_) {
    graphs_->forward(lane, out.data(), logsumexp.data(), qkv.data());
  } else {
    attention_forward<T>(lane, shape_, out, logsumexp, qkv);
  }
}

template <class T>
void Attention<T>::backward(Lane const& lane, Mat<T> dqkv, ConstMat<T> dout, ConstMat<T> out,
                            Vec<float const> logsumexp, ConstMat<T> qkv) const {
  if (graphs_) {
    graphs_->backward(lane, dqkv.data(), dout.data(), out.data(), logsumexp.data(), qkv.data());
  } else {
    attention_backward<T>(lane, shape_, dqkv, make_vec(delta_.data(), delta_.size()), dout, out, logsumexp, qkv);
  }
}

template class Attention<float>;
template class Attention<bf16>;
template class Attention<fp16>;

} // namespace kozero
