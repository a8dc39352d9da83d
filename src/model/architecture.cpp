#include "model/architecture.hpp"

#include "core/format.hpp"

namespace kozero {

std::string Architecture::describe() const {
  std::int64_t const psi = parameter_count(layout());
  return fmt::format("{}: {} parameters ({})", shape_text(), psi, format_count(static_cast<double>(psi)));
}

FormerTensors Architecture::former_tensors(std::int64_t format_version) const {
  FormerTensors all;
  for (auto const& block : layout()) {
    for (auto const& tensor : block.tensors()) {
      if (auto const former = former_tensor(tensor.spec.name, format_version)) all.emplace(tensor.spec.name, *former);
    }
  }
  return all;
}

} // namespace kozero
