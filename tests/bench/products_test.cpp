// The benchmark's products are those of training: their sizes, and what they compute.
#include "support/catch.hpp"
#include "support/gpt2_model.hpp"

#include "bench/products.hpp"
#include "core/activity.hpp"
#include "model/families.hpp"

using namespace kozero;
using namespace kozero::test;

TEST_CASE("the products of a token are the operations that the model says, without attention") {
  auto const architecture =
      architecture_of(gpt2_model({.layers = 3, .heads = 2, .width = 24, .context = 8, .vocabulary = 50}));
  constexpr std::int64_t rows = 16;
  double operations = 0;
  Ledger ledger;
  for (auto const& kind : architecture->products()) {
    auto const product = make_product(kind, rows, DType::bf16, ledger);
    for (ProductPass const pass : product_passes) {
      operations +=
          static_cast<double>(kind.times) * product->size(pass).operations() / static_cast<double>(product->rows());
    }
  }
  double const attention = 6.0 * 3 * 24 * 8; // pairs: as in model/gpt2_test.cpp
  CHECK(operations == Approx(architecture->training_flops(Recompute::none) - attention));
  CHECK(ledger.bytes(Space::device) == 0);
}

TEST_CASE("each pass is one call of the library, in every type and order of weights, also of odd sizes") {
  Ledger ledger;
  Lane const lane;
  for (DType const type : {DType::f32, DType::bf16, DType::f16}) {
    for (WeightOrder const order : {WeightOrder::out_in, WeightOrder::in_out}) {
      ModelProduct const kind{.name = "odd", .inputs = 7, .outputs = 13, .order = order};
      auto const product = make_product(kind, 5, type, ledger);
      CHECK(product->size(ProductPass::forward) == ProductSize{5, 13, 7});
      CHECK(product->size(ProductPass::input_gradient) == ProductSize{5, 7, 13});
      CHECK(product->size(ProductPass::weight_gradient) ==
            (order == WeightOrder::out_in ? ProductSize{13, 7, 5} : ProductSize{7, 13, 5}));
      for (ProductPass const pass : product_passes) product->run(lane, pass);
      lane.fence("rate");
    }
    ModelProduct const logits{.name = "head",
                              .inputs = 6,
                              .outputs = 257,
                              .times = 1,
                              .order = WeightOrder::out_in,
                              .result = ModelProduct::Result::logits};
    auto const head = make_product(logits, 3, type, ledger);
    CHECK(head->size(ProductPass::forward) == ProductSize{3, 257, 6});
    for (ProductPass const pass : product_passes) head->run(lane, pass);
    lane.fence("rate");
    // A micro-batch is more than a chunk of logits.
    auto const wide = ModelProduct{.name = "head",
                                   .inputs = 1,
                                   .outputs = 50257,
                                   .times = 1,
                                   .order = WeightOrder::out_in,
                                   .result = ModelProduct::Result::logits};
    CHECK(make_product(wide, 4096, type, ledger)->rows() < 4096);
  }
}
