#include "io/library_versions.hpp"

#include "io/hdf5_handle.hpp"

#include <fmt/format.h>

namespace kozero {

std::string library_versions() {
  h5::prepare_library();
  unsigned major = 0, minor = 0, release = 0;
  H5get_libversion(&major, &minor, &release);
  return fmt::format("HDF5 {}.{}.{}, yaml-cpp {}", major, minor, release, KOZERO_YAML_CPP_VERSION);
}

} // namespace kozero
