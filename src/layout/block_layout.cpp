#include "layout/block_layout.hpp"

#include "layout/shape.hpp"

#include <stdexcept>

namespace kozero {

std::int64_t TensorSpec::size() const { return elements_of(shape); }

std::int64_t TensorSpec::random_number(std::int64_t element) const {
  if (init.order == TensorInit::Order::as_stored) return init.first + element;
  std::int64_t const rows = shape.at(0);
  std::int64_t const columns = shape.at(1);
  return init.first + element % columns * rows + element / columns;
}

BlockLayout::BlockLayout(std::string name, std::vector<TensorSpec> specs) : name_(std::move(name)) {
  std::vector<PlacedTensor> tensors;
  tensors.reserve(specs.size());
  for (auto& spec : specs) tensors.push_back({std::move(spec), 0});
  auto const place = [&](bool decays) {
    for (auto& tensor : tensors) {
      if (tensor.spec.decays() != decays) continue;
      tensor.offset = size_;
      size_ += tensor.spec.size();
    }
  };
  place(true);
  decay_end_ = size_;
  place(false);
  tensors_ = std::make_shared<std::vector<PlacedTensor> const>(std::move(tensors));
}

PlacedTensor const& BlockLayout::tensor_at(std::int64_t element) const {
  for (auto const& tensor : tensors()) {
    Interval const interval = tensor.interval();
    if (interval.begin <= element && element < interval.end) return tensor;
  }
  throw std::out_of_range("element outside of block " + name_);
}

std::int64_t parameter_count(ModelLayout const& layout) {
  std::int64_t count = 0;
  for (auto const& block : layout) count += block.size();
  return count;
}

} // namespace kozero
