// Every product that a model asks for, held to cuBLASLt's rules: models of 124M, 1.5B and 7B parameters and odd ones,
// of which one layer says all. Nothing is multiplied, so weights and their gradients are addresses that nobody touches.
#include "kernels/cublaslt/stand_in.hpp"
#include "support/catch.hpp"
#include "support/device_array.hpp"
#include "support/gpt2_model.hpp"

#include "kernels/shapes.hpp"
#include "kernels/token_groups.hpp"
#include "model/model.hpp"

#include <algorithm>
#include <cstdlib>
#include <memory>
#include <new>

using namespace kozero;
using namespace kozero::test;
namespace stand_in = kozero::test::cublaslt_stand_in;

namespace {

/// Zeros that take no memory until they are written.
template <class T>
class Untouched {
public:
  explicit Untouched(std::int64_t count)
      : count_(count), memory_(std::calloc(static_cast<std::size_t>(count), sizeof(T)), &std::free) {
    if (!memory_) throw std::bad_alloc();
  }
  Vec<T> view() const { return make_vec(static_cast<T*>(memory_.get()), count_); }

private:
  std::int64_t count_;
  std::unique_ptr<void, decltype(&std::free)> memory_;
};

/// A micro-batch whose tokens are all the first of the vocabulary.
class OneToken {
public:
  explicit OneToken(std::int64_t rows)
      : tokens_(rows), starts_(std::vector<std::int32_t>{0, static_cast<std::int32_t>(rows)}), positions_(rows) {
    std::vector<std::int32_t> ascending(static_cast<std::size_t>(rows));
    for (std::int64_t i = 0; i < rows; ++i) ascending[i] = static_cast<std::int32_t>(i);
    positions_.set(ascending);
  }
  MicroBatch batch() const { return {tokens_.view(), tokens_.view(), {starts_.view(), positions_.view()}}; }

private:
  DeviceArray<std::int32_t> tokens_, starts_, positions_;
};

/// The views of some blocks, by their numbers.
template <class To, class From>
std::vector<Vec<To>> chosen(std::vector<Untouched<From>> const& blocks, std::vector<int> const& numbers) {
  std::vector<Vec<To>> views;
  for (int const number : numbers) views.push_back(blocks[number].view());
  return views;
}

/// The products of one micro-batch, forward, backward and evaluation.
template <class T>
std::set<stand_in::Product> products_of(ModelConfig const& config, std::int64_t micro) {
  stand_in::set_work(stand_in::Work::checks);
  stand_in::forget_products();
  Ledger ledger;
  Model<T> model(config, micro, Recompute::none, Purpose::train, ledger);
  std::vector<Untouched<T>> parameters;
  std::vector<Untouched<float>> gradients;
  for (auto const& block : model.layout()) {
    parameters.emplace_back(block.size());
    gradients.emplace_back(block.size());
  }
  Lane const lane;
  OneToken const tokens(micro * config.context);
  for (int u = 0; u < model.units(); ++u) {
    model.forward(lane, u, chosen<T const>(parameters, model.uses()[u].forward), tokens.batch());
  }
  int const last = model.units() - 1;
  auto const of_head = chosen<T const>(parameters, model.uses()[last].forward);
  model.head().loss(lane, of_head, tokens.batch());
  for (int u = last; u >= 0; --u) {
    model.backward(lane, u, chosen<T const>(parameters, model.uses()[u].backward),
                   chosen<float>(gradients, model.uses()[u].gradients), tokens.batch(), 1.0f);
  }
  Untouched<float> const logits(padded_vocabulary(config.vocabulary));
  model.head().logits(lane, of_head, make_mat(logits.view().data(), 1, padded_vocabulary(config.vocabulary)), 0);
  lane.fence("test");
  stand_in::set_work(stand_in::Work::computes);
  return stand_in::products();
}

bool has(std::set<stand_in::Product> const& products, std::uint64_t rows, std::uint64_t columns, std::uint64_t inner,
         cudaDataType_t result) {
  return std::ranges::any_of(products, [&](stand_in::Product const& one) {
    return one.rows == rows && one.columns == columns && one.inner == inner && one.result == result;
  });
}

template <class T>
constexpr cudaDataType_t type_of = std::is_same_v<T, float>  ? CUDA_R_32F
                                   : std::is_same_v<T, bf16> ? CUDA_R_16BF
                                                             : CUDA_R_16F;

/// A layer's four products forward, their gradients, and the head's three.
template <class T>
void check(ModelConfig const& config, std::int64_t micro) {
  auto const n = static_cast<std::uint64_t>(micro * config.context);
  auto const c = static_cast<std::uint64_t>(gpt2_of(config).width);
  auto const v = static_cast<std::uint64_t>(config.vocabulary);
  auto const products = products_of<T>(config, micro);
  CAPTURE(n, c, v, sizeof(T), products.size());
  for (std::uint64_t const out : {3 * c, c, 4 * c}) CHECK(has(products, out, n, c, type_of<T>));
  CHECK(has(products, c, n, 4 * c, type_of<T>));
  CHECK(has(products, c, 3 * c, n, CUDA_R_32F));
  CHECK(std::ranges::any_of(products, [&](auto const& one) { return one.rows == v && one.inner == c; }));
  for (auto const& one : products) {
    CHECK(one.operands == type_of<T>);
    CHECK(one.compute == CUBLAS_COMPUTE_32F);
    CHECK(one.workspace_bytes == std::uint64_t{32} << 20);
    if (one.result != CUDA_R_32F) CHECK(one.reductions == CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE);
  }
}

} // namespace

TEMPLATE_TEST_CASE("the products of models of every size keep to cuBLASLt's rules", "", float, bf16, fp16) {
  bool const tied = GENERATE(true, false);
  std::int64_t const micro = 2;
  auto const gpt2 = [&](std::int64_t heads, std::int64_t width) {
    return gpt2_model({.layers = 1, .heads = heads, .width = width, .context = 256, .vocabulary = 50257, .tied = tied});
  };
  SECTION("124M") { check<TestType>(gpt2(12, 768), micro); }
  SECTION("1.5B") { check<TestType>(gpt2(25, 1600), micro); }
  SECTION("7B") { check<TestType>(gpt2(32, 4096), micro); }
  SECTION("odd") {
    check<TestType>(gpt2_model({.layers = 2, .heads = 3, .width = 21, .context = 33, .vocabulary = 257, .tied = tied}),
                    3);
    check<TestType>(gpt2_model({.layers = 1, .heads = 1, .width = 3, .context = 3, .vocabulary = 5, .tied = tied}), 1);
  }
}
