#pragma once
// GPT-2 configurations as tests write them.

#include "config/config.hpp"
#include "model/gpt2/config.hpp"

namespace kozero::test {

/// The defaults of a deck.
struct Gpt2Shape {
  std::int64_t layers = 4;
  std::int64_t heads = 4;
  std::int64_t width = 128;
  std::int64_t context = 128;
  std::int64_t vocabulary = 256;
  bool tied = true;
};

inline Gpt2Config& gpt2_of(ModelConfig& model) { return model.own.as<Gpt2Config>(); }
inline Gpt2Config const& gpt2_of(ModelConfig const& model) { return gpt2_config(model); }

inline ModelConfig gpt2_model(Gpt2Shape const& shape = {}) {
  ModelConfig model("gpt2");
  model.context = shape.context;
  model.vocabulary = shape.vocabulary;
  gpt2_of(model) = {.layers = shape.layers, .heads = shape.heads, .width = shape.width, .tied = shape.tied};
  return model;
}

} // namespace kozero::test
