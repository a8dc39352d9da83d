#pragma once
// cuDNN as far as attention asks it, on a host: it refuses what cuDNN's pages forbid, and computes from the
// descriptions alone, in double.

#include "kernels/attention_graph.hpp"

#include <vector>

namespace kozero::test {

/// Refuses by an Error that begins with "rule:". What it does is by its definition, O(T²): for small shapes.
///
///     CudnnStandIn library;
///     GraphAttention attention(…, [&]() -> AttentionLibrary& { return library; });
class CudnnStandIn final : public AttentionLibrary {
public:
  explicit CudnnStandIn(std::int64_t most_workspace = attention_workspace_bound) : most_workspace_(most_workspace) {}

  std::shared_ptr<BuiltAttention const> build(AttentionGraph const& graph) override;
  /// As they were asked for, each once.
  std::vector<AttentionGraph> const& graphs() const { return graphs_; }

private:
  std::int64_t most_workspace_;
  std::vector<AttentionGraph> graphs_;
  std::vector<std::shared_ptr<BuiltAttention const>> built_;
};

} // namespace kozero::test
