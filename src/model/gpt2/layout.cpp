#include "model/gpt2/layout.hpp"

#include "model/gpt2/config.hpp"

#include <cmath>

namespace kozero {

namespace {

// Streams of random numbers are numbered as the tensors of format 1 were, in model order, so that a seed gives the
// model that it always gave: two of the embedding, twelve a layer, then the head's.
constexpr int first_layer_stream = 2;
constexpr int streams_a_layer = 12;
constexpr int qkv_stream = 2; // within a layer
constexpr int attention_proj_stream = 4;
constexpr int fc_stream = 8;
constexpr int mlp_proj_stream = 10;
constexpr int lm_head_stream = 2; // within the head

TensorInit normal(std::int64_t stream, std::int64_t first = 0) {
  return {.kind = TensorInit::Kind::normal, .deviation = 0.02, .stream = static_cast<int>(stream), .first = first};
}

std::vector<TensorSpec> layer_tensors(ModelConfig const& config, std::int64_t layer) {
  Gpt2Config const& own = gpt2_config(config);
  std::int64_t const c = own.width;
  std::int64_t const stream = first_layer_stream + layer * streams_a_layer;
  auto const into_residual = [&](int in_layer) {
    TensorInit init = normal(stream + in_layer);
    init.deviation /= std::sqrt(2.0 * static_cast<double>(own.layers));
    init.order = TensorInit::Order::transposed;
    return init;
  };
  TensorInit const one{TensorInit::Kind::one};
  TensorInit const zero{TensorInit::Kind::zero};
  std::string const h = "h." + std::to_string(layer) + ".";
  return {{h + "ln_1.weight", {c}, one},
          {h + "ln_1.bias", {c}, zero},
          {h + "attn.q.weight", {c, c}, normal(stream + qkv_stream)},
          {h + "attn.k.weight", {c, c}, normal(stream + qkv_stream, c * c)},
          {h + "attn.v.weight", {c, c}, normal(stream + qkv_stream, 2 * c * c)},
          {h + "attn.q.bias", {c}, zero},
          {h + "attn.k.bias", {c}, zero},
          {h + "attn.v.bias", {c}, zero},
          {h + "attn.proj.weight", {c, c}, into_residual(attention_proj_stream)},
          {h + "attn.proj.bias", {c}, zero},
          {h + "ln_2.weight", {c}, one},
          {h + "ln_2.bias", {c}, zero},
          {h + "mlp.fc.weight", {4 * c, c}, normal(stream + fc_stream)},
          {h + "mlp.fc.bias", {4 * c}, zero},
          {h + "mlp.proj.weight", {4 * c, c}, into_residual(mlp_proj_stream)},
          {h + "mlp.proj.bias", {c}, zero}};
}

} // namespace

ModelLayout gpt2_layout(ModelConfig const& config) {
  Gpt2Config const& own = gpt2_config(config);
  ModelLayout blocks;
  blocks.emplace_back("embedding", std::vector<TensorSpec>{{"wte.weight", {config.vocabulary, own.width}, normal(0)},
                                                           {"wpe.weight", {config.context, own.width}, normal(1)}});
  for (std::int64_t layer = 0; layer < own.layers; ++layer) {
    blocks.emplace_back("h." + std::to_string(layer), layer_tensors(config, layer));
  }
  std::vector<TensorSpec> head = {{"ln_f.weight", {own.width}, {TensorInit::Kind::one}},
                                  {"ln_f.bias", {own.width}, {TensorInit::Kind::zero}}};
  std::int64_t const head_stream = first_layer_stream + own.layers * streams_a_layer;
  if (!own.tied) {
    head.push_back({"lm_head.weight", {config.vocabulary, own.width}, normal(head_stream + lm_head_stream)});
  }
  blocks.emplace_back("head", std::move(head));
  return blocks;
}

std::vector<UnitUses> gpt2_uses(ModelConfig const& config) {
  Gpt2Config const& own = gpt2_config(config);
  int const head = static_cast<int>(own.layers) + 1;
  std::vector<UnitUses> uses;
  uses.push_back({{0}, {}, {0}}); // an embedding's gradient needs the tokens alone
  for (int u = 1; u < head; ++u) uses.push_back({{u}, {u}, {u}});
  if (own.tied) {
    uses.push_back({{head, 0}, {head, 0}, {head, 0}});
  } else {
    uses.push_back({{head}, {head}, {head}});
  }
  return uses;
}

std::optional<FormerTensor> gpt2_former_tensor(ModelConfig const& config, std::string const& name,
                                               std::int64_t format_version) {
  if (format_version != 1) return std::nullopt;
  std::int64_t const c = gpt2_config(config).width;
  std::size_t const in_layer = name.find('.', name.find('.') + 1) + 1; // after "h.3."
  std::string const layer = name.substr(0, in_layer);
  std::string const tensor = name.substr(in_layer);
  if (!layer.starts_with("h.")) return std::nullopt;
  auto const third = [&](std::int64_t number) -> std::optional<FormerTensor> {
    if (tensor.ends_with(".weight")) return FormerTensor{layer + "attn.qkv.weight", {3 * c, c}, number * c * c};
    return FormerTensor{layer + "attn.qkv.bias", {3 * c}, number * c};
  };
  if (tensor.starts_with("attn.q.")) return third(0);
  if (tensor.starts_with("attn.k.")) return third(1);
  if (tensor.starts_with("attn.v.")) return third(2);
  if (tensor == "attn.proj.weight") return FormerTensor{name, {c, c}, 0, FormerTensor::Order::transposed};
  if (tensor == "mlp.proj.weight") return FormerTensor{name, {c, 4 * c}, 0, FormerTensor::Order::transposed};
  return std::nullopt;
}

} // namespace kozero
