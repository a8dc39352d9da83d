// The rules are those of cuDNN's developer guide (attention, forward and backward, on Hopper) and of its frontend:
// operations_attention, "scaled dot product attention".
#include "kernels/cudnn_stand_in.hpp"

#include "core/error.hpp"

#include <cmath>
#include <cstring>
#include <limits>

namespace kozero::test {

namespace {

using enum AttentionTensor;

constexpr std::int64_t alignment = 16; // bytes

#define KOZERO_RULE(condition, words) KOZERO_REQUIRE(condition, "rule: {}", words)

std::vector<AttentionTensor> tensors_of(AttentionPass pass) {
  if (pass == AttentionPass::forward) return {q, k, v, out, stats};
  return {q, k, v, out, stats, dout, dq, dk, dv};
}

void require_layout(TensorLayout const& tensor, TensorLayout const& as) {
  KOZERO_RULE(tensor.size == as.size, "all tensors but the statistics are [window, head, token, column] of one size");
  KOZERO_RULE(tensor.type == as.type, "all tensors but the statistics are of one type");
  KOZERO_RULE(tensor.stride[3] == 1, "columns follow each other");
  for (int i = 0; i < 3; ++i) {
    KOZERO_RULE(tensor.stride[i] > 0 && tensor.stride[i] * size_of(tensor.type) % alignment == 0,
                "strides are multiples of 16 bytes");
  }
}

void require_rules(AttentionGraph const& graph) {
  TensorLayout const& first = graph.tensors[q];
  KOZERO_RULE(first.type == DType::bf16 || first.type == DType::f16, "elements have 16 bits");
  KOZERO_RULE(first.size[3] % 8 == 0, "columns of a head are a multiple of 8");
  KOZERO_RULE(first.size[3] <= 256, "a head has at most 256 columns");
  KOZERO_RULE(first.size[2] > 1, "a window has more than one token");
  KOZERO_RULE(first.size[0] > 0 && first.size[1] > 0, "there are windows and heads");
  for (AttentionTensor const tensor : tensors_of(graph.pass)) {
    if (tensor != stats) require_layout(graph.tensors[tensor], first);
  }
  TensorLayout const& sums = graph.tensors[stats];
  auto const [windows, heads, tokens, columns] = first.size;
  KOZERO_RULE(sums.type == DType::f32, "statistics are fp32");
  KOZERO_RULE((sums.size == std::array{windows, heads, tokens, std::int64_t{1}}),
              "statistics are [window, head, token, 1]");
  KOZERO_RULE((sums.stride == std::array{heads * tokens, tokens, std::int64_t{1}, std::int64_t{1}}),
              "statistics have no gaps");
  KOZERO_RULE(graph.mask == AttentionMask::causal, "a token sees none that comes later"); // ours, not cuDNN's
  KOZERO_RULE(graph.pass == AttentionPass::forward || graph.sums == AttentionSums::in_order,
              "a backward pass is deterministic"); // ours
}

// As the frontend documents it: 64 queries by 128 keys at a time, of two bytes; the sums of dout · out.
std::int64_t workspace_of(AttentionGraph const& graph) {
  if (graph.pass == AttentionPass::forward) return 0;
  auto const [windows, heads, tokens, columns] = graph.tensors[q].size;
  std::int64_t const queries = (tokens + 63) / 64 * 64;
  std::int64_t const keys = (tokens + 127) / 128 * 128;
  return windows * heads * (queries * keys * 2 + tokens * 4);
}

// A tensor where it lies.
class Values {
public:
  Values(TensorLayout const& layout, void* data) : layout_(layout), data_(data) {}

  double get(std::int64_t window, std::int64_t head, std::int64_t token, std::int64_t column) const {
    std::int64_t const at = index(window, head, token, column);
    return with_float_type(layout_.type, [&](auto zero) -> double {
      return static_cast<float>(static_cast<decltype(zero) const*>(data_)[at]);
    });
  }
  void set(std::int64_t window, std::int64_t head, std::int64_t token, std::int64_t column, double value) const {
    std::int64_t const at = index(window, head, token, column);
    with_float_type(layout_.type, [&](auto zero) {
      using T = decltype(zero);
      static_cast<T*>(data_)[at] = static_cast<T>(static_cast<float>(value));
    });
  }

private:
  std::int64_t index(std::int64_t window, std::int64_t head, std::int64_t token, std::int64_t column) const {
    auto const& stride = layout_.stride;
    return window * stride[0] + head * stride[1] + token * stride[2] + column * stride[3];
  }
  TensorLayout layout_;
  void* data_;
};

// One head of one window.
class Head {
public:
  Head(AttentionGraph const& graph, PerTensor<void*> const& data, std::int64_t window, std::int64_t head)
      : graph_(graph), data_(data), window_(window), head_(head), tokens_(graph.tensors[q].size[2]),
        columns_(graph.tensors[q].size[3]) {}

  void forward() const {
    for (std::int64_t t = 0; t < tokens_; ++t) {
      std::vector<double> scores;
      double top = -std::numeric_limits<double>::infinity();
      for (std::int64_t j = 0; j < seen(t); ++j) {
        scores.push_back(score(t, j));
        top = std::max(top, scores.back());
      }
      double sum = 0;
      for (double const value : scores) sum += std::exp(value - top);
      of(stats).set(window_, head_, t, 0, top + std::log(sum));
      for (std::int64_t i = 0; i < columns_; ++i) {
        double total = 0;
        for (std::int64_t j = 0; j < seen(t); ++j) {
          total += std::exp(scores[static_cast<std::size_t>(j)] - top) / sum * get(v, j, i);
        }
        of(out).set(window_, head_, t, i, total);
      }
    }
  }

  void backward() const {
    auto const size = static_cast<std::size_t>(tokens_ * columns_);
    std::vector<double> to_q(size), to_k(size), to_v(size);
    auto const at = [&](std::int64_t token, std::int64_t i) { return static_cast<std::size_t>(token * columns_ + i); };
    for (std::int64_t t = 0; t < tokens_; ++t) {
      double const delta = dot(dout, t, out, t);
      for (std::int64_t j = 0; j < seen(t); ++j) {
        double const p = std::exp(score(t, j) - of(stats).get(window_, head_, t, 0));
        double const ds = p * (dot(dout, t, v, j) - delta) * graph_.scale;
        for (std::int64_t i = 0; i < columns_; ++i) {
          to_q[at(t, i)] += ds * get(k, j, i);
          to_k[at(j, i)] += ds * get(q, t, i);
          to_v[at(j, i)] += p * get(dout, t, i);
        }
      }
    }
    for (std::int64_t t = 0; t < tokens_; ++t) {
      for (std::int64_t i = 0; i < columns_; ++i) {
        of(dq).set(window_, head_, t, i, to_q[at(t, i)]);
        of(dk).set(window_, head_, t, i, to_k[at(t, i)]);
        of(dv).set(window_, head_, t, i, to_v[at(t, i)]);
      }
    }
  }

private:
  Values of(AttentionTensor tensor) const { return {graph_.tensors[tensor], data_[tensor]}; }
  double get(AttentionTensor tensor, std::int64_t token, std::int64_t column) const {
    return of(tensor).get(window_, head_, token, column);
  }
  std::int64_t seen(std::int64_t token) const { return graph_.mask == AttentionMask::causal ? token + 1 : tokens_; }
  double dot(AttentionTensor a, std::int64_t row_of_a, AttentionTensor b, std::int64_t row_of_b) const {
    double sum = 0;
    for (std::int64_t i = 0; i < columns_; ++i) sum += get(a, row_of_a, i) * get(b, row_of_b, i);
    return sum;
  }
  double score(std::int64_t token, std::int64_t key) const { return graph_.scale * dot(q, token, k, key); }

  AttentionGraph const& graph_;
  PerTensor<void*> const& data_;
  std::int64_t window_, head_, tokens_, columns_;
};

class BuiltStandIn final : public BuiltAttention {
public:
  explicit BuiltStandIn(AttentionGraph const& graph) : graph_(graph) {}
  std::int64_t workspace_bytes() const override { return workspace_of(graph_); }
  void run(Lane::Exec const&, PerTensor<void*> const& data, void* workspace) const override {
    for (AttentionTensor const tensor : tensors_of(graph_.pass)) {
      KOZERO_RULE(data[tensor] != nullptr, "every tensor is there");
      KOZERO_RULE(reinterpret_cast<std::uintptr_t>(data[tensor]) % alignment == 0,
                  "tensors begin at multiples of 16 bytes");
    }
    KOZERO_RULE(workspace != nullptr || workspace_bytes() == 0, "there is workspace");
    KOZERO_RULE(reinterpret_cast<std::uintptr_t>(workspace) % 256 == 0, "workspace begins at a multiple of 256 bytes");
    std::memset(workspace, 0xff, static_cast<std::size_t>(workspace_bytes())); // it holds anything afterwards
    for (std::int64_t window = 0; window < graph_.tensors[q].size[0]; ++window) {
      for (std::int64_t head = 0; head < graph_.tensors[q].size[1]; ++head) {
        Head const one(graph_, data, window, head);
        graph_.pass == AttentionPass::forward ? one.forward() : one.backward();
      }
    }
  }

private:
  AttentionGraph graph_;
};

} // namespace

std::shared_ptr<BuiltAttention const> CudnnStandIn::build(AttentionGraph const& graph) {
  for (std::size_t i = 0; i < graphs_.size(); ++i) {
    if (graphs_[i] == graph) return built_[i];
  }
  require_rules(graph);
  KOZERO_RULE(workspace_of(graph) <= most_workspace_, "the workspace is below the bound");
  graphs_.push_back(graph);
  return built_.emplace_back(std::make_shared<BuiltStandIn>(graph));
}

} // namespace kozero::test
