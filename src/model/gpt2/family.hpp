#pragma once
#include "model/families.hpp"

#include <memory>

namespace kozero {

std::shared_ptr<Family const> gpt2_family();

} // namespace kozero
