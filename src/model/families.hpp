#pragma once
#include "config/model_family.hpp"
#include "model/architecture.hpp"

#include <memory>

namespace kozero {

/// A family of models: its keys in the deck (ModelFamily), and what is built for them.
class Family : public ModelFamily {
public:
  virtual std::unique_ptr<Architecture> architecture(ModelConfig const& model) const = 0;
};

/// Makes a family known to decks and to architecture_of. Before any configuration is made.
void register_family(std::shared_ptr<Family const> family);

/// Registers the families that are built in; every program does so first. Once is enough, more does nothing.
void register_model_families();

std::unique_ptr<Architecture> architecture_of(ModelConfig const& model);

} // namespace kozero
