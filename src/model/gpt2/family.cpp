// GPT-2's section of the deck, and its sizes as published (Radford et al. 2019, table 2).
#include "model/gpt2/family.hpp"

#include "model/gpt2/architecture.hpp"
#include "model/gpt2/config.hpp"

#include <algorithm>

namespace kozero {

namespace {

NamedSize published(char const* name, std::int64_t layers, std::int64_t heads, std::int64_t width) {
  return {name, {{"layers", layers}, {"heads", heads}, {"width", width}, {"context", 1024}, {"vocabulary", 50257}}};
}

class Gpt2Family final : public Family {
public:
  std::string name() const override { return "gpt2"; }
  FamilyKeys defaults() const override { return FamilyKeys(Gpt2Config()); }

  std::vector<Key> keys(FamilyKeys& own) const override {
    constexpr Limits size20{.low = 1, .high = 1 << 20}; // as in config/schema.cpp
    constexpr Limits size16{.low = 1, .high = 1 << 16};
    using enum Severity;
    auto& c = own.as<Gpt2Config>();
    return {{"layers", &c.layers, size16, forbidden, "transformer layers (L)"},
            {"heads", &c.heads, size20, forbidden, "attention heads (H); they divide the width"},
            {"width", &c.width, size20, forbidden, "of the residual stream (C)"},
            {"tied", &c.tied, Limits{}, forbidden, "the head uses the token embedding's weights"}};
  }

  std::vector<NamedSize> sizes() const override {
    return {published("gpt2-124m", 12, 12, 768), published("gpt2-355m", 24, 16, 1024),
            published("gpt2-774m", 36, 20, 1280), published("gpt2-1.5b", 48, 25, 1600)};
  }

  std::vector<Finding> faults(ModelConfig const& model, Sound const& sound) const override {
    Gpt2Config const& own = gpt2_config(model);
    std::vector<std::string> const shape = {"model.width", "model.heads"};
    if (!sound(shape) || own.width % own.heads == 0) return {};
    return {{shape, fmt::format("{} is not a multiple of model.heads = {} (each head takes an equal part of the "
                                "width); change one",
                                own.width, own.heads)}};
  }

  /// 34 C is above what a layer keeps a token: 16 C, statistics and its share of the scratch. Attention has at most one
  /// team for each token and head.
  MicroBatchLoad load(ModelConfig const& model) const override {
    Gpt2Config const& own = gpt2_config(model);
    auto const real = [](std::int64_t value) { return static_cast<double>(value); };
    return {.elements = std::max(34 * real(own.width) * real(own.layers), real(own.heads) * real(model.context)),
            .teams = own.heads,
            .keys = {"model.layers", "model.width", "model.heads"}};
  }

  std::unique_ptr<Architecture> architecture(ModelConfig const& model) const override {
    return gpt2_architecture(model);
  }
};

} // namespace

std::shared_ptr<Family const> gpt2_family() { return std::make_shared<Gpt2Family>(); }

} // namespace kozero
