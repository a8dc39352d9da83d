#pragma once
// Attention of a model by the graphs of a library.

#include "core/ledger.hpp"
#include "kernels/attention_graph.hpp"

#include <functional>
#include <memory>
#include <vector>

namespace kozero {

/// Holds the graphs of one shape and their workspace, and gives the lane what they are to do, part by part. With a
/// ledger that counts, the library is not asked for.
class GraphAttention {
public:
  /// T is of 16 bits. The workspace is at most `bound` bytes; Error where the library wants more than was planned.
  GraphAttention(AttentionShape const& shape, std::int64_t head_width, DType type, AttentionPasses passes,
                 std::int64_t bound, Ledger& ledger, std::function<AttentionLibrary&()> const& library);

  /// As Attention has them; rows follow each other without gaps.
  void forward(Lane const& lane, void* out, float* stats, void const* qkv) const;
  void backward(Lane const& lane, void* dqkv, void const* dout, void const* out, float const* stats,
                void const* qkv) const;

private:
  struct Job {
    AttentionPart part;
    std::shared_ptr<BuiltAttention const> graph;
  };
  struct Arrays {
    void const* qkv = nullptr;
    void const* out = nullptr;
    float const* stats = nullptr;
    void const* dout = nullptr;
    void* dqkv = nullptr;
  };
  std::shared_ptr<BuiltAttention const> build(AttentionLibrary& library, AttentionGraph const& graph) const;
  void run(Lane const& lane, char const* label, Job const& job, Arrays const& arrays) const;

  AttentionShape shape_;
  std::int64_t head_width_;
  DType type_;
  DeviceBuffer<unsigned char> workspace_;
  std::vector<Job> forward_, backward_; // in the order that they run
};

} // namespace kozero
