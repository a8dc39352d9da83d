#pragma once
// tests/reference/gpt2_*.h5: what PyTorch computes for GPT-2 with random weights. See tests/reference/README.md.

#include "support/gpt2_model.hpp"

#include <hdf5.h>

#include <cstdint>
#include <stdexcept>
#include <string>
#include <vector>

namespace kozero::test {

class ReferenceFile {
public:
  explicit ReferenceFile(std::string const& name)
      : file_(H5Fopen((std::string(KOZERO_SOURCE_DIR) + "/tests/reference/" + name).c_str(), H5F_ACC_RDONLY,
                      H5P_DEFAULT)) {
    if (file_ < 0) throw std::runtime_error("cannot open " + name);
  }
  ~ReferenceFile() { H5Fclose(file_); }
  ReferenceFile(ReferenceFile const&) = delete;

  std::int64_t attribute(char const* name) const {
    hid_t const id = H5Aopen(file_, name, H5P_DEFAULT);
    std::int64_t value = 0;
    bool const read = id >= 0 && H5Aread(id, H5T_NATIVE_INT64, &value) >= 0;
    H5Aclose(id);
    if (!read) throw std::runtime_error(std::string("no attribute ") + name);
    return value;
  }

  template <class T>
  std::vector<T> read(std::string const& name) const {
    hid_t const id = H5Dopen2(file_, name.c_str(), H5P_DEFAULT);
    if (id < 0) throw std::runtime_error("no dataset " + name);
    hid_t const space = H5Dget_space(id);
    std::vector<T> values(static_cast<std::size_t>(H5Sget_simple_extent_npoints(space)));
    H5Sclose(space);
    bool const read = H5Dread(id, type_of<T>(), H5S_ALL, H5S_ALL, H5P_DEFAULT, values.data()) >= 0;
    H5Dclose(id);
    if (!read) throw std::runtime_error("cannot read " + name);
    return values;
  }

  ModelConfig model() const {
    return gpt2_model({.layers = attribute("layers"),
                       .heads = attribute("heads"),
                       .width = attribute("width"),
                       .context = attribute("context"),
                       .vocabulary = attribute("vocabulary"),
                       .tied = attribute("tied") != 0});
  }

private:
  template <class T>
  static hid_t type_of() {
    if constexpr (std::is_same_v<T, float>) return H5T_NATIVE_FLOAT;
    if constexpr (std::is_same_v<T, double>) return H5T_NATIVE_DOUBLE;
    return H5T_NATIVE_INT32;
  }
  hid_t file_;
};

} // namespace kozero::test
