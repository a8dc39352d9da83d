#include "model/model.hpp"

#include "model/gpt2/layout.hpp"

namespace kozero {

ModelLayout model_layout(ModelConfig const& config) { return gpt2_layout(config); }
std::vector<UnitUses> model_uses(ModelConfig const& config) { return gpt2_uses(config); }

template <class T>
Model<T>::Model(ModelConfig const& config, std::int64_t batch, Recompute recompute, Purpose purpose, Ledger& ledger)
    : shape_{batch, config.context, config.width, config.heads, config.vocabulary}, layout_(model_layout(config)), uses_(model_uses(config)) {
  bool const trains = purpose == Purpose::train;
  auto const stream_buffer = [&](std::string const& label) {
    return DeviceBuffer<T>(ledger, Category::activations, label, shape_.rows() * shape_.width,
                           DeviceBuffer<T>::Init::none);
  };
  auto const matrix = [this](DeviceBuffer<T> const& buffer) {
    return make_mat(buffer.data(), shape_.rows(), shape_.width);
  };

  // Without a backward pass two buffers in turn are enough.
  std::int64_t const boundaries = trains ? config.layers + 1 : 2;
  for (std::int64_t i = 0; i < boundaries; ++i) stream_.push_back(stream_buffer(fmt::format("stream.{}", i)));
  auto const stream = [&](std::int64_t i) { return matrix(stream_[i % boundaries]); };
  gradient_ = trains ? stream_buffer("stream.gradient") : DeviceBuffer<T>();
  Mat<T> const d = trains ? matrix(gradient_) : Mat<T>();
  auto const scratch = trains ? std::make_shared<Gpt2Scratch<T>>(shape_, ledger) : nullptr;
  bool const one_frame = !trains || recompute == Recompute::unit;
  auto const make_frame = [&](Category category, std::string const& label) {
    return std::make_shared<Gpt2LayerFrame<T>>(shape_, category, label, ledger);
  };
  auto const shared_frame =
      one_frame ? make_frame(trains ? Category::recompute : Category::activations, "layer") : nullptr;

  units_.push_back(std::make_unique<Gpt2Embedding<T>>(layout_.front(), stream(0), d));
  for (std::int64_t i = 0; i < config.layers; ++i) {
    auto const frame = one_frame ? shared_frame : make_frame(Category::activations, fmt::format("h.{}", i));
    units_.push_back(
        std::make_unique<Gpt2Layer<T>>(layout_[i + 1], shape_, recompute, frame, scratch, stream(i), stream(i + 1), d));
  }
  auto head = std::make_unique<Gpt2Head<T>>(layout_.back(), layout_.front(), shape_, config.tied, scratch,
                                            stream(config.layers), d, ledger);
  head_ = head.get();
  units_.push_back(std::move(head));
}

template class Model<float>;
template class Model<bf16>;
template class Model<fp16>;

} // namespace kozero
