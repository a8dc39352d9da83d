#include "model/families.hpp"

#include "core/error.hpp"
#include "model/gpt2/family.hpp"

namespace kozero {

void register_family(std::shared_ptr<Family const> family) { register_model_family(std::move(family)); }

void register_model_families() {
  static bool done = false;
  if (!done) register_family(gpt2_family());
  done = true;
}

std::unique_ptr<Architecture> architecture_of(ModelConfig const& model) {
  auto const* const family = dynamic_cast<Family const*>(&model_family(model.family));
  KOZERO_REQUIRE(family, "model.family '{}' has keys but no architecture (a fault of kozero); please report it",
                 model.family);
  return family->architecture(model);
}

} // namespace kozero
