#include "model/families.hpp"

#include "core/error.hpp"
#include "model/gpt2/family.hpp"

namespace kozero {

namespace {

std::vector<std::shared_ptr<Family const>>& registered() {
  static std::vector<std::shared_ptr<Family const>> families;
  return families;
}

} // namespace

void register_family(std::shared_ptr<Family const> family) {
  register_model_family(family);
  registered().push_back(std::move(family));
}

void register_model_families() {
  static bool done = false;
  if (!done) register_family(gpt2_family());
  done = true;
}

std::unique_ptr<Architecture> architecture_of(ModelConfig const& model) {
  for (auto const& family : registered()) {
    if (family->name() == model.family) return family->architecture(model);
  }
  throw Error(fmt::format("model.family '{}' has keys but no architecture (a fault of kozero); please report it",
                          model.family));
}

} // namespace kozero
