#pragma once
#include "config/config.hpp"

namespace kozero {

/// The keys of the section `model` that GPT-2 has of its own.
struct Gpt2Config {
  std::int64_t layers = 4;  // L
  std::int64_t heads = 4;   // H
  std::int64_t width = 128; // C
  bool tied = true;         // the head uses the token embedding
  friend bool operator==(Gpt2Config const&, Gpt2Config const&) = default;
};

inline Gpt2Config const& gpt2_config(ModelConfig const& config) { return config.own.as<Gpt2Config>(); }

} // namespace kozero
