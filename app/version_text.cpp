#include "app/version_text.hpp"

#include "core/device.hpp"
#include "core/kokkos.hpp"
#include "core/version.hpp"
#include "io/library_versions.hpp"
#include "kernels/gemm.hpp"

#include <fmt/format.h>

namespace kozero {

std::string version_text() {
  std::string text = version();
  text += fmt::format("\nKokkos {} {}, {}", kokkos_version(), DeviceExec::name(), gemm_backend());
  text += fmt::format("\n{}", library_versions());
  auto const parts = device_parts();
  constexpr char const* line = "\n{:<15} {:<12} {}";
  if (!parts.empty()) text += fmt::format(line, "", "built with", "here");
  for (auto const& part : parts) text += fmt::format(line, part.name, part.built_with, part.here);
  return text;
}

} // namespace kozero
