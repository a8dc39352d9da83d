#pragma once
#include "model/architecture.hpp"

#include <memory>

namespace kozero {

std::unique_ptr<Architecture> gpt2_architecture(ModelConfig const& config);

} // namespace kozero
