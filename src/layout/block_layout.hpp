#pragma once
#include "layout/partition.hpp"

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace kozero {

/// How a tensor starts. Normal numbers come from a stream of them that the seed and a number name, so that a tensor's
/// values stay the same when other tensors come before it, or when it is stored in another way.
struct TensorInit {
  enum class Kind { zero, one, normal } kind = Kind::zero;
  double deviation = 0; // of the normal distribution; its mean is 0
  int stream = 0;
  std::int64_t first = 0; // the number of the stream that element 0 takes
  /// transposed: element (i,o) of [I,O] takes number first + o·I + i, as element (o,i) of [O,I] does.
  enum class Order { as_stored, transposed } order = Order::as_stored;
};

/// One parameter tensor of a model.
struct TensorSpec {
  std::string name;
  std::vector<std::int64_t> shape;
  TensorInit init;

  std::int64_t size() const;
  /// Weight decay acts on matrices, not on norms and biases.
  bool decays() const { return shape.size() >= 2; }
  /// The number of the stream that an element takes.
  std::int64_t random_number(std::int64_t element) const;
};

/// A tensor in its place in a block.
struct PlacedTensor {
  TensorSpec spec;
  std::int64_t offset = 0; // in the block
  Interval interval() const { return {offset, offset + spec.size()}; }
};

/// The flat parameter array of one unit: decayed tensors first, then the others, each in model order, no gaps.
///
///     BlockLayout block("h.0", specs);
///     block.tensors()[i].offset;     // in model order
///     block.decay_end();             // elements before it decay
///
/// Copies share the tensors, which never change.
class BlockLayout {
public:
  BlockLayout(std::string name, std::vector<TensorSpec> specs);

  std::string const& name() const { return name_; }
  std::vector<PlacedTensor> const& tensors() const { return *tensors_; }
  std::int64_t size() const { return size_; }
  std::int64_t decay_end() const { return decay_end_; }
  /// The tensor of that element of the block, which must be in [0, size()).
  PlacedTensor const& tensor_at(std::int64_t element) const;

private:
  std::string name_;
  std::shared_ptr<std::vector<PlacedTensor> const> tensors_;
  std::int64_t size_ = 0;
  std::int64_t decay_end_ = 0;
};

/// All blocks of a model, in unit order: block u belongs to unit u.
using ModelLayout = std::vector<BlockLayout>;

/// Psi: the number of parameters.
std::int64_t parameter_count(ModelLayout const& layout);

} // namespace kozero
