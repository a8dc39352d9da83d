#include "layout/block_layout.hpp"
#include "support/catch.hpp"

#include <stdexcept>

using namespace kozero;

namespace {

TensorSpec tensor(std::string name, std::vector<std::int64_t> shape) { return {std::move(name), std::move(shape), {}}; }

// The tensors of a GPT-2 with one layer and a tied head, written down by hand.
ModelLayout gpt2_of_one_layer(std::int64_t vocabulary, std::int64_t time, std::int64_t width) {
  std::int64_t const c = width;
  ModelLayout layout;
  layout.emplace_back("embedding", std::vector{tensor("wte", {vocabulary, c}), tensor("wpe", {time, c})});
  layout.emplace_back("h.0",
                      std::vector{tensor("ln_1.weight", {c}), tensor("ln_1.bias", {c}),
                                  tensor("qkv.weight", {3 * c, c}), tensor("qkv.bias", {3 * c}),
                                  tensor("proj.weight", {c, c}), tensor("proj.bias", {c}), tensor("ln_2.weight", {c}),
                                  tensor("ln_2.bias", {c}), tensor("fc.weight", {4 * c, c}), tensor("fc.bias", {4 * c}),
                                  tensor("fc_proj.weight", {c, 4 * c}), tensor("fc_proj.bias", {c})});
  layout.emplace_back("head", std::vector{tensor("ln_f.weight", {c}), tensor("ln_f.bias", {c})});
  return layout;
}

} // namespace

TEST_CASE("a block puts decayed tensors first and keeps model order within both kinds") {
  BlockLayout const block(
      "h.0", {tensor("norm", {4}), tensor("matrix", {2, 3}), tensor("bias", {2}), tensor("other matrix", {3, 3})});
  auto const& placed = block.tensors();
  REQUIRE(placed.size() == 4);
  CHECK(placed[0].spec.name == "norm"); // listed in model order
  CHECK(placed[1].interval() == Interval{0, 6});
  CHECK(placed[3].interval() == Interval{6, 15});
  CHECK(block.decay_end() == 15);
  CHECK(placed[0].interval() == Interval{15, 19});
  CHECK(placed[2].interval() == Interval{19, 21});
  CHECK(block.size() == 21);
}

TEST_CASE("every element of a block belongs to the tensor that says so, tensors without elements included") {
  BlockLayout const block(
      "b", {tensor("empty matrix", {0, 3}), tensor("m", {2, 2}), tensor("empty", {0}), tensor("v", {3})});
  REQUIRE(block.size() == 7);
  for (std::int64_t i = 0; i < block.size(); ++i) CHECK(block.tensor_at(i).spec.name == (i < 4 ? "m" : "v"));
  CHECK_THROWS_AS(block.tensor_at(7), std::out_of_range);
  CHECK_THROWS_AS(block.tensor_at(-1), std::out_of_range);
}

TEST_CASE("only tensors of rank 2 and more decay") {
  CHECK_FALSE(tensor("scalar", {}).decays());
  CHECK(tensor("scalar", {}).size() == 1);
  CHECK_FALSE(tensor("bias", {5}).decays());
  CHECK(tensor("matrix", {5, 1}).decays());
  CHECK(tensor("matrix", {100000, 100000}).size() == 10'000'000'000);
}

TEST_CASE("a tensor takes its numbers of a stream from where it is told, and in its order") {
  TensorSpec part = tensor("k", {2, 3});
  part.init.first = 12;
  for (std::int64_t i = 0; i < 6; ++i) CHECK(part.random_number(i) == 12 + i);
  // [I,O] = [2,3] takes the numbers that [3,2] takes as it stands
  part.init.order = TensorInit::Order::transposed;
  std::vector<std::int64_t> numbers;
  for (std::int64_t i = 0; i < 6; ++i) numbers.push_back(part.random_number(i) - 12);
  CHECK(numbers == std::vector<std::int64_t>{0, 2, 4, 1, 3, 5});
}

TEST_CASE("a block without tensors is empty") {
  BlockLayout const block("none", {});
  CHECK(block.size() == 0);
  CHECK(block.decay_end() == 0);
}

TEST_CASE("the decks odd and tiny have the parameters that CASES counts") {
  CHECK(parameter_count(gpt2_of_one_layer(257, 33, 21)) == 11697);
  CHECK(parameter_count(gpt2_of_one_layer(5, 3, 3)) == 177);
}
