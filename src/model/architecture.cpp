#include "model/architecture.hpp"

#include "core/format.hpp"

namespace kozero {

std::string Architecture::describe() const {
  std::int64_t const psi = parameter_count(layout());
  return fmt::format("{}: {} parameters ({})", shape_text(), psi, format_count(static_cast<double>(psi)));
}

} // namespace kozero
