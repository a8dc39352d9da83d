#include "config/model_family.hpp"

#include "core/error.hpp"

#include <fmt/ranges.h>

#include <algorithm>

namespace kozero {

namespace {

std::vector<std::shared_ptr<ModelFamily const>>& registered() {
  static std::vector<std::shared_ptr<ModelFamily const>> families;
  return families;
}

std::string default_family() {
  KOZERO_REQUIRE(!registered().empty(), "no family of models is registered (a fault of kozero); please report it");
  return registered().front()->name();
}

} // namespace

void register_model_family(std::shared_ptr<ModelFamily const> family) {
  for (auto const& other : registered()) {
    KOZERO_REQUIRE(other->name() != family->name(),
                   "two families of models are called '{}' (a fault of kozero); please report it", family->name());
  }
  registered().push_back(std::move(family));
}

std::vector<std::shared_ptr<ModelFamily const>> const& model_families() { return registered(); }

ModelFamily const& model_family(std::string_view name) {
  std::vector<std::string> known;
  for (auto const& family : registered()) {
    if (family->name() == name) return *family;
    known.push_back(family->name());
  }
  throw InputError(
      fmt::format("model.family: '{}' is no family of models; write one of {}", name, fmt::join(known, ", ")));
}

ModelConfig::ModelConfig() : ModelConfig(default_family()) {}
ModelConfig::ModelConfig(std::string_view of) : family(of), own(model_family(of).defaults()) {}

} // namespace kozero
