#include "model/gpt2/layout.hpp"

#include <cmath>

namespace kozero {

namespace {

std::vector<TensorSpec> layer_tensors(ModelConfig const& config, std::int64_t layer) {
  std::int64_t const c = config.width;
  TensorInit const normal{TensorInit::Kind::normal, 0.02};
  TensorInit const into_residual{TensorInit::Kind::normal, 0.02 / std::sqrt(2.0 * static_cast<double>(config.layers))};
  TensorInit const one{TensorInit::Kind::one};
  TensorInit const zero{TensorInit::Kind::zero};
  std::string const h = "h." + std::to_string(layer) + ".";
  return {{h + "ln_1.weight", {c}, one},
          {h + "ln_1.bias", {c}, zero},
          {h + "attn.qkv.weight", {3 * c, c}, normal},
          {h + "attn.qkv.bias", {3 * c}, zero},
          {h + "attn.proj.weight", {c, c}, into_residual},
          {h + "attn.proj.bias", {c}, zero},
          {h + "ln_2.weight", {c}, one},
          {h + "ln_2.bias", {c}, zero},
          {h + "mlp.fc.weight", {4 * c, c}, normal},
          {h + "mlp.fc.bias", {4 * c}, zero},
          {h + "mlp.proj.weight", {c, 4 * c}, into_residual},
          {h + "mlp.proj.bias", {c}, zero}};
}

} // namespace

ModelLayout gpt2_layout(ModelConfig const& config) {
  TensorInit const normal{TensorInit::Kind::normal, 0.02};
  ModelLayout blocks;
  int number = 0;
  auto const add = [&](std::string name, std::vector<TensorSpec> tensors) {
    int const first = number;
    number += static_cast<int>(tensors.size());
    blocks.emplace_back(std::move(name), std::move(tensors), first);
  };
  add("embedding", {{"wte.weight", {config.vocabulary, config.width}, normal},
                    {"wpe.weight", {config.context, config.width}, normal}});
  for (std::int64_t layer = 0; layer < config.layers; ++layer) {
    add("h." + std::to_string(layer), layer_tensors(config, layer));
  }
  std::vector<TensorSpec> head = {{"ln_f.weight", {config.width}, {TensorInit::Kind::one}},
                                  {"ln_f.bias", {config.width}, {TensorInit::Kind::zero}}};
  if (!config.tied) head.push_back({"lm_head.weight", {config.vocabulary, config.width}, normal});
  add("head", std::move(head));
  return blocks;
}

std::vector<UnitUses> gpt2_uses(ModelConfig const& config) {
  int const head = static_cast<int>(config.layers) + 1;
  std::vector<UnitUses> uses;
  uses.push_back({{0}, {}, {0}}); // an embedding's gradient needs the tokens alone
  for (int u = 1; u < head; ++u) uses.push_back({{u}, {u}, {u}});
  if (config.tied) {
    uses.push_back({{head, 0}, {head, 0}, {head, 0}});
  } else {
    uses.push_back({{head}, {head}, {head}});
  }
  return uses;
}

} // namespace kozero
