#pragma once
// A family of models for tests alone, small and unlike the built-in one: x = norm(wte[token] + wpe[position]),
// logits = x · wteᵀ. Two units of very different sizes, of which the second reads the first one's block.

#include "core/launch.hpp"
#include "kernels/column_sum.hpp"
#include "kernels/elementwise.hpp"
#include "kernels/embedding.hpp"
#include "kernels/head.hpp"
#include "kernels/layernorm.hpp"
#include "kernels/shapes.hpp"
#include "model/families.hpp"

namespace kozero::test {

/// The keys of its own: model.channels and model.deviation.
struct LookupConfig {
  std::int64_t channels = 13; // C
  double deviation = 0.1;     // of the first values
  friend bool operator==(LookupConfig const&, LookupConfig const&) = default;
};

namespace lookup {

enum EmbeddingTensor : int { wte, wpe };
enum HeadTensor : int { norm_weight, norm_bias };

template <class E>
Vec<E> vec(DeviceBuffer<E> const& buffer) {
  return make_vec(buffer.data(), buffer.size());
}

template <class T>
class Embedding final : public Unit<T> {
public:
  Embedding(BlockLayout const& layout, Mat<T> x, Mat<T> d) : view_(layout), x_(x), d_(d) {}
  void forward(Lane const& lane, Params<T> params, MicroBatch const& batch) override {
    embedding_forward<T>(lane, x_, batch.tokens, view_.matrix(params[0], wte), view_.matrix(params[0], wpe));
  }
  void backward(Lane const& lane, Params<T>, Grads grads, MicroBatch const& batch, float) override {
    embedding_backward<T>(lane, view_.matrix(grads[0], wte), view_.matrix(grads[0], wpe), d_, batch.tokens,
                          batch.groups);
  }

private:
  BlockView view_;
  Mat<T> x_, d_;
};

/// Reads its own block and the embedding's.
template <class T>
class Scores final : public Head<T> {
public:
  Scores(ModelLayout const& layout, std::int64_t vocabulary, Mat<T> x, Mat<T> d, Ledger& ledger)
      : view_(layout[1]), embedding_(layout[0]), x_(x), d_(d), norm_(buffer<T>(ledger, "norm", rows(x) * cols(x))),
        dnorm_(buffer<T>(ledger, "dnorm", rows(d) * cols(x))), mean_(buffer<float>(ledger, "mean", rows(x))),
        rstd_(buffer<float>(ledger, "rstd", rows(x))), losses_(buffer<float>(ledger, "losses", rows(x))),
        sums_(buffer<float>(ledger, "sums", column_sum_scratch(rows(x), cols(x)))),
        chunk_rows_(head_chunk_rows(rows(x), vocabulary)), chunk_columns_(padded_vocabulary(vocabulary)),
        logits_(buffer<float>(ledger, "logits", chunk_rows_ * chunk_columns_)),
        dlogits_(buffer<T>(ledger, "dlogits", chunk_rows_ * chunk_columns_)) {}

  void forward(Lane const& lane, Params<T> params, MicroBatch const&) override {
    layernorm_forward<T>(lane, norm(), vec(mean_), vec(rstd_), x_, view_.vector(params[0], norm_weight),
                         view_.vector(params[0], norm_bias));
  }
  void backward(Lane const& lane, Params<T> params, Grads grads, MicroBatch const& batch, float scale) override {
    Mat<T> const dnorm = make_mat(dnorm_.data(), rows(x_), cols(x_));
    head_loss_and_gradient<T>(lane, vec(losses_), dnorm, embedding_.matrix(grads[1], wte), chunk(), norm(),
                              weight(params), batch.targets, scale);
    fill(lane, on_device(d_.data()), T(0.0f), rows(d_) * cols(d_));
    layernorm_backward<T>(lane, d_, view_.vector(grads[0], norm_weight), view_.vector(grads[0], norm_bias), vec(sums_),
                          dnorm, x_, vec(mean_), vec(rstd_), view_.vector(params[0], norm_weight));
  }
  void loss(Lane const& lane, Params<T> params, MicroBatch const& batch) override {
    head_loss<T>(lane, vec(losses_), chunk(), norm(), weight(params), batch.targets);
  }
  Vec<float const> losses() const override { return make_vec<float const>(losses_.data(), losses_.size()); }
  void logits(Lane const& lane, Params<T> params, Mat<float> logits, std::int64_t first) override {
    head_logits<T>(lane, logits, make_mat<T const>(norm_.data() + first * cols(x_), rows(logits), cols(x_)),
                   weight(params));
  }

private:
  template <class E>
  static DeviceBuffer<E> buffer(Ledger& ledger, char const* label, std::int64_t count) {
    return {ledger, Category::activations, label, count, DeviceBuffer<E>::Init::none};
  }
  Mat<T> norm() const { return make_mat(norm_.data(), rows(x_), cols(x_)); }
  Mat<T const> weight(Params<T> params) const { return embedding_.matrix(params[1], wte); }
  HeadScratch<T> chunk() const {
    return {make_mat(logits_.data(), chunk_rows_, chunk_columns_),
            make_mat(dlogits_.data(), chunk_rows_, chunk_columns_)};
  }

  BlockView view_, embedding_;
  Mat<T> x_, d_;
  DeviceBuffer<T> norm_, dnorm_;
  DeviceBuffer<float> mean_, rstd_, losses_, sums_;
  std::int64_t chunk_rows_, chunk_columns_;
  DeviceBuffer<float> logits_;
  DeviceBuffer<T> dlogits_;
};

class LookupArchitecture final : public ArchitectureOf<LookupArchitecture> {
public:
  explicit LookupArchitecture(ModelConfig const& config) : config_(config), own_(config_.own.as<LookupConfig>()) {}

  ModelLayout layout() const override {
    auto const normal = [this](int stream) {
      return TensorInit{.kind = TensorInit::Kind::normal, .deviation = own_.deviation, .stream = stream};
    };
    std::int64_t const c = own_.channels;
    using Specs = std::vector<TensorSpec>;
    return {{"embedding", Specs{{"wte.weight", {config_.vocabulary, c}, normal(0)},
                                {"wpe.weight", {config_.context, c}, normal(1)}}},
            {"scores", Specs{{"norm.weight", {c}, {TensorInit::Kind::one}}, {"norm.bias", {c}, {}}}}};
  }
  std::vector<UnitUses> uses() const override { return {{{0}, {}, {0}}, {{1, 0}, {1, 0}, {1, 0}}}; }
  std::string shape_text() const override { return fmt::format("lookup of {} channels", own_.channels); }
  double training_flops(Recompute) const override {
    return 6.0 * static_cast<double>(config_.vocabulary) * static_cast<double>(own_.channels);
  }
  std::vector<ModelProduct> products() const override {
    return {{.name = "scores",
             .inputs = own_.channels,
             .outputs = config_.vocabulary,
             .result = ModelProduct::Result::logits}};
  }
  AttentionChoice attention(DType, std::int64_t) const override { return {.text = "none"}; }
  std::optional<FormerTensor> former_tensor(std::string const&, std::int64_t) const override { return std::nullopt; }

  template <class T>
  UnitList<T> build(ModelLayout const& layout, BuildOptions const& options, Ledger& ledger) const {
    UnitList<T> list;
    auto const stream = [&](char const* label, std::int64_t n) {
      auto const& buffer = list.streams.emplace_back(ledger, Category::activations, label, n * own_.channels,
                                                     DeviceBuffer<T>::Init::none);
      return make_mat(buffer.data(), n, own_.channels);
    };
    std::int64_t const n = options.batch * config_.context;
    Mat<T> const x = stream("x", n);
    Mat<T> const d = stream("d", options.purpose == Purpose::train ? n : 0);
    list.units.push_back(std::make_unique<Embedding<T>>(layout[0], x, d));
    auto head = std::make_unique<Scores<T>>(layout, config_.vocabulary, x, d, ledger);
    list.head = head.get();
    list.units.push_back(std::move(head));
    return list;
  }

private:
  ModelConfig config_;
  LookupConfig const& own_;
};

class LookupFamily final : public Family {
public:
  std::string name() const override { return "lookup"; }
  FamilyKeys defaults() const override { return FamilyKeys(LookupConfig()); }
  std::vector<Key> keys(FamilyKeys& own) const override {
    auto& c = own.as<LookupConfig>();
    return {{"channels", &c.channels, Limits{.low = 2, .high = 4096}, Severity::forbidden, "of a token"},
            {"deviation", &c.deviation, Limits{.low = 0}, Severity::forbidden, "of the first values"}};
  }
  std::vector<NamedSize> sizes() const override { return {{"lookup-small", {{"channels", 5}, {"context", 9}}}}; }
  std::vector<Finding> faults(ModelConfig const& model, Sound const& sound) const override {
    std::vector<std::string> const both = {"model.channels", "model.vocabulary"};
    if (!sound(both) || model.own.as<LookupConfig>().channels <= model.vocabulary) return {};
    return {{both, "is above model.vocabulary (channels would be wasted); make it smaller"}};
  }
  MicroBatchLoad load(ModelConfig const& model) const override {
    return {.elements = 3.0 * static_cast<double>(model.own.as<LookupConfig>().channels), .keys = {"model.channels"}};
  }
  std::unique_ptr<Architecture> architecture(ModelConfig const& model) const override {
    return std::make_unique<LookupArchitecture>(model);
  }
};

} // namespace lookup

/// Once a program.
inline void register_lookup_family() {
  static bool done = false;
  if (!done) register_family(std::make_shared<lookup::LookupFamily>());
  done = true;
}

} // namespace kozero::test
