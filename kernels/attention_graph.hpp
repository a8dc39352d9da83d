#pragma once
// What attention asks of a library that takes a whole pass as one graph of tensors (cuDNN). All that makes a graph what
// it is stands in plain descriptions, so that it is tested where there is no such library.

#include "core/dtype.hpp"
#include "core/launch.hpp"
#include "kernels/attention_parts.hpp"

#include <array>
#include <memory>
#include <optional>
#include <string>

namespace kozero {

/// The tensors of a graph. The forward pass has those up to stats.
enum class AttentionTensor { q, k, v, out, stats, dout, dq, dk, dv };
inline constexpr std::size_t attention_tensors = 9;

/// Something for each of them; `of[AttentionTensor::q]`.
template <class Value>
struct PerTensor {
  std::array<Value, attention_tensors> values{};
  Value& operator[](AttentionTensor tensor) { return values[static_cast<std::size_t>(tensor)]; }
  Value const& operator[](AttentionTensor tensor) const { return values[static_cast<std::size_t>(tensor)]; }
  friend bool operator==(PerTensor const&, PerTensor const&) = default;
};

/// [window, head, token, column], with the elements from one of each to the next.
struct TensorLayout {
  DType type = DType::f32;
  std::array<std::int64_t, 4> size{};
  std::array<std::int64_t, 4> stride{};
  friend bool operator==(TensorLayout const&, TensorLayout const&) = default;
};

enum class AttentionPass { forward, backward };
enum class AttentionMask { none, causal };           // causal: token t sees those up to t
enum class AttentionSums { in_any_order, in_order }; // in order: a run again gives the same bits

/// One pass over one part. All tensors begin at multiples of 16 bytes.
struct AttentionGraph {
  AttentionPass pass = AttentionPass::forward;
  PerTensor<TensorLayout> tensors;
  float scale = 0; // of scores
  AttentionMask mask = AttentionMask::causal;
  AttentionSums sums = AttentionSums::in_order;
  friend bool operator==(AttentionGraph const&, AttentionGraph const&) = default;
};

/// The graph of a pass over a part of that size of qkv [N,3C] and out [N,C], which is read and written in place.
AttentionGraph attention_graph(AttentionPass pass, AttentionCut const& part, AttentionShape const& shape,
                               std::int64_t head_width, DType type);

/// A graph as the library has made it.
class BuiltAttention {
public:
  virtual ~BuiltAttention() = default;
  virtual std::int64_t workspace_bytes() const = 0;
  /// Gives the work to the stream. `workspace` begins at a multiple of 256 bytes.
  virtual void run(Lane::Exec const& exec, PerTensor<void*> const& data, void* workspace) const = 0;
};

class AttentionLibrary {
public:
  virtual ~AttentionLibrary() = default;
  /// One graph is built once. Error where the library refuses it.
  virtual std::shared_ptr<BuiltAttention const> build(AttentionGraph const& graph) = 0;
};

/// What is known of a library before it is loaded.
struct AttentionLibraryLimits {
  std::string name = {};
  std::int64_t widest_head = 0; // columns
};

/// Of the library that the program was built with, if any (one of two twins: attention_cudnn.cpp,
/// attention_no_cudnn.cpp).
std::optional<AttentionLibraryLimits> attention_library_limits();
/// Loads it. Error where it is not there, or too old.
AttentionLibrary& attention_library();

} // namespace kozero
