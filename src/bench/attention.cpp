#include "kernels/attention.hpp"

#include "bench/benchmarks.hpp"
#include "bench/numbers.hpp"
#include "bench/products.hpp"
#include "comm/agree.hpp"
#include "config/compute_type.hpp"
#include "config/schema.hpp"
#include "core/error.hpp"
#include "model/families.hpp"

namespace kozero {

namespace {

/// Attention on arrays of its own.
class AttentionWork {
public:
  virtual ~AttentionWork() = default;
  AttentionWork() = default;
  AttentionWork(AttentionWork const&) = delete;
  AttentionWork& operator=(AttentionWork const&) = delete;
  virtual void forward(Lane const& lane) const = 0;
  virtual void backward(Lane const& lane) const = 0;
};

template <class T>
class AttentionOf final : public AttentionWork {
public:
  AttentionOf(AttentionShape const& shape, std::int64_t head_width, AttentionWays ways, Ledger& ledger)
      : tokens_(shape.batch * shape.context), width_(shape.heads * head_width),
        qkv_(bench_numbers<T>(ledger, tokens_ * 3 * width_)), out_(bench_numbers<T>(ledger, tokens_ * width_)),
        dqkv_(bench_numbers<T>(ledger, tokens_ * 3 * width_)), dout_(bench_numbers<T>(ledger, tokens_ * width_)),
        logsumexp_(bench_numbers<float>(ledger, tokens_ * shape.heads)),
        attention_(shape, head_width, ways, AttentionPasses::both, ledger) {
    forward(Lane()); // what the backward pass takes from it
  }

  void forward(Lane const& lane) const override {
    attention_.forward(lane, matrix(out_, width_), vector(logsumexp_), matrix(qkv_, 3 * width_));
  }
  void backward(Lane const& lane) const override {
    attention_.backward(lane, matrix(dqkv_, 3 * width_), matrix(dout_, width_), matrix(out_, width_),
                        vector(logsumexp_), matrix(qkv_, 3 * width_));
  }

private:
  Mat<T> matrix(DeviceBuffer<T> const& buffer, std::int64_t columns) const {
    return make_mat(buffer.data(), tokens_, columns);
  }
  static Vec<float> vector(DeviceBuffer<float> const& buffer) { return make_vec(buffer.data(), buffer.size()); }

  std::int64_t tokens_, width_;
  DeviceBuffer<T> qkv_, out_, dqkv_, dout_;
  DeviceBuffer<float> logsumexp_;
  Attention<T> attention_;
};

/// Operations of `products` products of heads, over the half of the pairs that is not masked.
double operations_of(AttentionShape const& shape, std::int64_t head_width, int products) {
  auto const real = [](std::int64_t value) { return static_cast<double>(value); };
  return products * real(shape.batch * shape.heads * head_width) * real(shape.context) * real(shape.context);
}

} // namespace

BenchReport bench_attention(BenchInput const& input) {
  Config const& config = input.config;
  auto const architecture = architecture_of(config.model);
  auto const of_model = architecture->attention_shape();
  if (!of_model) {
    throw SharedError(
        fmt::format("{} has no attention (there is nothing to measure); name another deck", architecture->shape_text()),
        exit_bad_input);
  }
  DType const compute = dtype_of_compute(config.precision.compute);
  AttentionShape const shape{.batch = config.batch.micro, .context = config.model.context, .heads = of_model->heads};
  auto const attention = on_all_ranks(input.ranks, [&] {
    return with_float_type(compute, [&]<class T>(T) -> std::unique_ptr<AttentionWork> {
      return std::make_unique<AttentionOf<T>>(shape, of_model->head_width, of_model->ways, input.ledger);
    });
  });
  ModelProduct const kind = architecture->products().front();
  auto const product =
      on_all_ranks(input.ranks, [&] { return make_product(kind, shape.batch * shape.context, compute, input.ledger); });

  BenchTable table{.key = "rows",
                   .columns = {{"pass", "pass"},
                               {"seconds", "ms"},
                               {"spread", "spread"},
                               {"flops_per_s", "FLOP/s"},
                               {"limit_flops_per_s", "product"},
                               {"share", "share"}},
                   .rows = {}};
  Lane const lane;
  auto const workspace = bench_workspace(input);
  double const of_product = product->size(ProductPass::forward).operations();
  auto const add = [&](char const* pass, int products, std::function<void()> const& work) {
    double const operations = operations_of(shape, of_model->head_width, products);
    RoundFigures const figures = figures_of(
        measure_rounds(input.ranks, input.pace, lane, work, [&] { product->run(lane, ProductPass::forward); }));
    table.rows.push_back({bench_words(pass),
                          {.value = figures.work_s, .text = fmt::format("{:.3f}", figures.work_s * 1e3)},
                          bench_share(figures.spread()),
                          bench_rate(operations / figures.work_s, "FLOP/s"),
                          bench_rate(of_product / figures.limit_s, "FLOP/s"),
                          bench_share(figures.ratio * operations / of_product)});
  };
  add("forward", 2, [&] { attention->forward(lane); });
  add("backward", 5, [&] { attention->backward(lane); });

  return {
      .benchmark = "attention",
      .title = fmt::format("Attention of {}, {} windows of {} tokens, {} heads of {}, {}", architecture->shape_text(),
                           shape.batch, shape.context, shape.heads, of_model->head_width,
                           text_of(config, "precision.compute")),
      .facts = bench_facts(input.ranks),
      .tables = {std::move(table)},
      .notes = {fmt::format("FLOP: 2 products forward and 5 backward over half of the pairs of tokens; softmax counts "
                            "nothing. product: {}, forward, in turn with it.",
                            kind.name),
                "By: " + architecture->attention(compute, shape.batch).text},
      .warnings = {}};
}

} // namespace kozero
