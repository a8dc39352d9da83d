#include "infer/generate.hpp"

#include "support/catch.hpp"
#include "support/training.hpp"

#include <cmath>

using namespace kozero;
using namespace kozero::test;

namespace {

std::int32_t sampled(std::vector<float> const& logits, double temperature, std::int64_t top_k, double uniform) {
  return sample_token(logits, {.temperature = temperature, .top_k = top_k}, uniform);
}

std::string written(std::string const& checkpoint, Config const& config, std::string const& prompt,
                    GenerateOptions const& options) {
  Ledger ledger;
  std::string text;
  std::vector<std::int32_t> const tokens(prompt.begin(), prompt.end());
  generate(
      CheckpointReader(resolve_checkpoint(checkpoint)), config, tokens, options,
      [&](std::int32_t token) { text += static_cast<char>(token); }, ledger);
  return text;
}

} // namespace

TEST_CASE("temperature 0 takes the likeliest token, of equals the first") {
  for (double const uniform : {1e-17, 0.5, 1.0}) {
    CHECK(sampled({0.5f, 3.0f, -1.0f, 2.0f}, 0, 0, uniform) == 1);
    CHECK(sampled({2.0f, 3.0f, 3.0f, 3.0f}, 0, 0, uniform) == 1);
    CHECK(sampled({2.0f, 3.0f, 4.0f}, 0, 2, uniform) == 2);
    CHECK(sampled({-INFINITY, -5.0f}, 0, 0, uniform) == 1);
    CHECK(sampled({7.0f}, 1, 0, uniform) == 0);
  }
}

TEST_CASE("a token is drawn where the uniform number falls in the softmax") {
  // Probabilities 1/2, 1/4, 1/8, 1/8.
  std::vector<float> const logits = {std::log(4.0f), std::log(2.0f), 0.0f, 0.0f};
  struct Draw {
    double uniform;
    std::int32_t token;
  };
  for (auto const& [uniform, token] :
       {Draw{1e-17, 0}, {0.49, 0}, {0.51, 1}, {0.74, 1}, {0.76, 2}, {0.874, 2}, {0.876, 3}, {0.999, 3}, {1.0, 3}}) {
    INFO(uniform);
    CHECK(sampled(logits, 1, 0, uniform) == token);
  }
  // Half the temperature squares them: 16/22, 4/22, 1/22, 1/22. Twice takes their roots: 2, √2, 1, 1 of 4 + √2.
  CHECK(sampled(logits, 0.5, 0, 15.9 / 22) == 0);
  CHECK(sampled(logits, 0.5, 0, 16.1 / 22) == 1);
  CHECK(sampled(logits, 0.5, 0, 20.1 / 22) == 2);
  double const all = 4 + std::sqrt(2.0);
  CHECK(sampled(logits, 2, 0, 1.99 / all) == 0);
  CHECK(sampled(logits, 2, 0, 2.01 / all) == 1);
  CHECK(sampled(logits, 2, 0, (2.01 + std::sqrt(2.0)) / all) == 2);
}

TEST_CASE("top-k keeps the k likeliest, of equals the first") {
  std::vector<float> const logits = {0.0f, std::log(2.0f), 0.0f, std::log(4.0f)};
  CHECK(sampled(logits, 1, 1, 0.999) == 3);
  CHECK(sampled(logits, 1, 2, 3.99 / 6) == 3);
  CHECK(sampled(logits, 1, 2, 4.01 / 6) == 1);
  CHECK(sampled(logits, 1, 3, 0.999) == 0);
  for (double const uniform : {0.1, 0.4, 0.6, 0.9}) {
    CHECK(sampled(logits, 1, 4, uniform) == sampled(logits, 1, 0, uniform));
    CHECK(sampled(logits, 1, 100, uniform) == sampled(logits, 1, 0, uniform));
  }
}

TEST_CASE("a token of probability 0 is never drawn") {
  std::vector<float> const logits = {-2000.0f, 0.0f, -2000.0f};
  for (double const uniform : {1e-17, 0.5, 1.0}) CHECK(sampled(logits, 1, 0, uniform) == 1);
  for (double const uniform : {1e-17, 0.5, 1.0}) CHECK(sampled({1.0f, 1.001f, 0.0f}, 1e-6, 0, uniform) == 1);
}

TEST_CASE_METHOD(RunFixture, "a model that has learned a text by heart writes it on any rank, also past its context") {
  std::string const verse = "kozero: ";
  std::string text;
  for (int i = 0; i < 200; ++i) text += verse;
  config.data.train = folder.write("verse", text);
  config.run.updates = 250;
  config.optimizer.lr = 1e-2;
  for (auto const compute : {ComputeType::fp32, ComputeType::bf16}) {
    config.precision.compute = compute;
    trained(config, folder.file("run"), world);
    CHECK(written(folder.file("run"), config, "ko", {.tokens = 80, .temperature = 0}) == text.substr(2, 80));
    CHECK(written(folder.file("run"), config, text.substr(0, 100), {.tokens = 9, .temperature = 0}) ==
          text.substr(100, 9));
    config.precision.compute = ComputeType::fp16; // a checkpoint's parameters are fp32 whatever it was trained in
    CHECK(written(folder.file("run"), config, "ko", {.tokens = 80, .temperature = 0}) == text.substr(2, 80));
  }
}

TEST_CASE_METHOD(RunFixture,
                 "the same parameters write the same text, however many ranks and whatever stage saved them") {
  config.run.updates = 3;
  config.zero.stage = 0;
  Metrics const stage_0 = trained(config, folder.file("stage 0"), world);
  config.zero.stage = 3;
  REQUIRE(trained(config, folder.file("stage 3"), world).hash() == stage_0.hash());
  if (world.rank() == 0) {
    GenerateOptions options{.tokens = 60, .temperature = 1.2, .top_k = 50, .seed = 7};
    std::string const text = written(folder.file("stage 3"), config, "a", options);
    CHECK(text.size() == 60);
    CHECK(text == written(folder.file("stage 0"), config, "a", options));
    options.seed = 8;
    CHECK(text != written(folder.file("stage 0"), config, "a", options));
    options = {.tokens = 60, .temperature = 0};
    std::string const greedy = written(folder.file("stage 3"), config, "a", options);
    CHECK(greedy == written(folder.file("stage 0"), config, "a", options));
    options = {.tokens = 60, .temperature = 2, .top_k = 1};
    CHECK(greedy == written(folder.file("stage 3"), config, "a", options));
    CHECK(written(folder.file("stage 3"), config, "a", {.tokens = 0}).empty());
  }
}

TEST_CASE_METHOD(RunFixture, "prompts and temperatures that mean nothing are refused") {
  config.run.updates = 1;
  trained(config, folder.file("run"), world);
  CheckpointReader const checkpoint(resolve_checkpoint(folder.file("run")));
  auto const refusal = [&](std::vector<std::int32_t> const& prompt, double temperature) {
    GenerateOptions const options{.tokens = 1, .temperature = temperature};
    return message_of<InputError>([&] {
      generate(
          checkpoint, config, prompt, options, [](std::int32_t) {}, ledger);
    });
  };
  CHECK(contains(refusal({}, 1), {"prompt is empty", "; "}));
  CHECK(contains(refusal({1, 257}, 1), {"token 257", "vocabulary of 257", "; "}));
  CHECK(contains(refusal({-1}, 1), {"token -1", "; "}));
  CHECK(contains(refusal({1}, std::nan("")), {"temperature is nan", "; "}));
  CHECK(contains(refusal({1}, -1), {"temperature is -1", "; "}));
  CHECK(refusal({1, 256}, 1).empty());
}
