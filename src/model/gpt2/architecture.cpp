#include "model/gpt2/architecture.hpp"

#include "model/gpt2/config.hpp"
#include "model/gpt2/layout.hpp"
#include "model/gpt2/units.hpp"

namespace kozero {

namespace {

class Gpt2Architecture final : public ArchitectureOf<Gpt2Architecture> {
public:
  explicit Gpt2Architecture(ModelConfig const& config) : config_(config), own_(gpt2_config(config_)) {}

  ModelLayout layout() const override { return gpt2_layout(config_); }
  std::vector<UnitUses> uses() const override { return gpt2_uses(config_); }

  std::string shape_text() const override {
    return fmt::format("GPT-2 {}L {}H {}C, context {}, vocabulary {}, {} head", own_.layers, own_.heads, own_.width,
                       config_.context, config_.vocabulary, own_.tied ? "tied" : "own");
  }

  double training_flops(Recompute recompute) const override {
    auto const real = [](std::int64_t value) { return static_cast<double>(value); };
    double const layers = real(own_.layers) * (12 * real(own_.width) * real(own_.width) +
                                               real(own_.width) * real(config_.context)); // weights, pairs of tokens
    double const head = real(config_.vocabulary) * real(own_.width);
    double const passes = recompute == Recompute::unit ? 8 : 6;
    return passes * layers + 6 * head;
  }

  std::vector<ModelProduct> products() const override {
    std::int64_t const c = own_.width;
    std::int64_t const layers = own_.layers;
    return {{.name = "qkv", .inputs = c, .outputs = 3 * c, .times = layers},
            {.name = "attention.proj", .inputs = c, .outputs = c, .times = layers, .order = WeightOrder::in_out},
            {.name = "mlp.fc", .inputs = c, .outputs = 4 * c, .times = layers},
            {.name = "mlp.proj", .inputs = 4 * c, .outputs = c, .times = layers, .order = WeightOrder::in_out},
            {.name = "head", .inputs = c, .outputs = config_.vocabulary, .result = ModelProduct::Result::logits}};
  }
  std::optional<ModelAttention> attention_shape() const override {
    return ModelAttention{
        .heads = own_.heads, .head_width = own_.width / own_.heads, .times = own_.layers, .ways = ways()};
  }

  AttentionChoice attention(DType compute, std::int64_t batch) const override {
    Gpt2Sizes const sizes = sizes_of(batch);
    return choose_attention(sizes.attention(), sizes.head_width(), compute, ways());
  }

  std::optional<FormerTensor> former_tensor(std::string const& name, std::int64_t format_version) const override {
    return gpt2_former_tensor(config_, name, format_version);
  }

  template <class T>
  UnitList<T> build(ModelLayout const& layout, BuildOptions const& options, Ledger& ledger) const {
    Gpt2Sizes const sizes = sizes_of(options.batch);
    bool const trains = options.purpose == Purpose::train;
    UnitList<T> list;
    auto const stream_buffer = [&](std::string const& label) {
      auto const& buffer = list.streams.emplace_back(ledger, Category::activations, label, sizes.rows() * sizes.width,
                                                     DeviceBuffer<T>::Init::none);
      return make_mat(buffer.data(), sizes.rows(), sizes.width);
    };

    // Without a backward pass two buffers in turn are enough.
    std::vector<Mat<T>> boundaries(static_cast<std::size_t>(trains ? own_.layers + 1 : 2));
    for (std::size_t i = 0; i < boundaries.size(); ++i) boundaries[i] = stream_buffer(fmt::format("stream.{}", i));
    auto const stream = [&](std::int64_t i) { return boundaries[static_cast<std::size_t>(i) % boundaries.size()]; };
    Mat<T> const d = trains ? stream_buffer("stream.gradient") : Mat<T>();
    auto const attention =
        std::make_shared<Attention<T> const>(sizes.attention(), sizes.head_width(), ways(),
                                             trains ? AttentionPasses::both : AttentionPasses::forward, ledger);
    auto const scratch = trains ? std::make_shared<Gpt2Scratch<T>>(sizes, ledger) : nullptr;
    bool const one_frame = !trains || options.recompute == Recompute::unit;
    auto const make_frame = [&](Category category, std::string const& label) {
      return std::make_shared<Gpt2LayerFrame<T>>(sizes, category, label, ledger);
    };
    auto const shared_frame =
        one_frame ? make_frame(trains ? Category::recompute : Category::activations, "layer") : nullptr;

    list.units.push_back(std::make_unique<Gpt2Embedding<T>>(layout.front(), stream(0), d));
    for (std::int64_t i = 0; i < own_.layers; ++i) {
      auto const frame = one_frame ? shared_frame : make_frame(Category::activations, fmt::format("h.{}", i));
      list.units.push_back(std::make_unique<Gpt2Layer<T>>(layout[static_cast<std::size_t>(i + 1)], sizes,
                                                          options.recompute, frame, attention, scratch, stream(i),
                                                          stream(i + 1), d));
    }
    auto head = std::make_unique<Gpt2Head<T>>(layout.back(), layout.front(), sizes, own_.tied, scratch,
                                              stream(own_.layers), d, ledger);
    list.head = head.get();
    list.units.push_back(std::move(head));
    return list;
  }

private:
  AttentionWays ways() const {
    return config_.attention == AttentionBy::tiles ? AttentionWays::tiles : AttentionWays::all;
  }
  Gpt2Sizes sizes_of(std::int64_t batch) const {
    return {batch, config_.context, own_.width, own_.heads, config_.vocabulary};
  }

  ModelConfig config_;
  Gpt2Config const& own_;
};

} // namespace

std::unique_ptr<Architecture> gpt2_architecture(ModelConfig const& config) {
  return std::make_unique<Gpt2Architecture>(config);
}

} // namespace kozero
