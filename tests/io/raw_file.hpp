#pragma once
// HDF5 without kozero: what another program sees of a file, and can make of it.

#include "support/catch.hpp"

#include <hdf5.h>

#include <filesystem>
#include <vector>

namespace kozero::test {

class RawFile {
public:
  enum class Access { read, write };
  explicit RawFile(std::filesystem::path const& path, Access access = Access::read)
      : id(H5Fopen(path.c_str(), access == Access::read ? H5F_ACC_RDONLY : H5F_ACC_RDWR, H5P_DEFAULT)) {
    REQUIRE(id >= 0);
  }
  ~RawFile() { H5Fclose(id); }
  RawFile(RawFile const&) = delete;
  RawFile& operator=(RawFile const&) = delete;

  bool has(std::string const& object) const { return H5Lexists(id, object.c_str(), H5P_DEFAULT) > 0; }
  std::vector<double> numbers(std::string const& dataset) const {
    hid_t const data = H5Dopen2(id, dataset.c_str(), H5P_DEFAULT);
    hid_t const space = H5Dget_space(data);
    std::vector<double> values(static_cast<std::size_t>(H5Sget_simple_extent_npoints(space)));
    CHECK(H5Dread(data, H5T_NATIVE_DOUBLE, H5S_ALL, H5S_ALL, H5P_DEFAULT, values.data()) >= 0);
    H5Sclose(space);
    H5Dclose(data);
    return values;
  }
  /// As they stand in the file.
  std::vector<unsigned char> bytes(std::string const& dataset) const {
    hid_t const data = H5Dopen2(id, dataset.c_str(), H5P_DEFAULT);
    hid_t const space = H5Dget_space(data);
    hid_t const type = H5Dget_type(data);
    std::vector<unsigned char> values(static_cast<std::size_t>(H5Sget_simple_extent_npoints(space)) *
                                      H5Tget_size(type));
    CHECK(H5Dread(data, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, values.data()) >= 0);
    H5Tclose(type);
    H5Sclose(space);
    H5Dclose(data);
    return values;
  }
  std::vector<std::int64_t> shape(std::string const& dataset) const {
    hid_t const data = H5Dopen2(id, dataset.c_str(), H5P_DEFAULT);
    hid_t const space = H5Dget_space(data);
    std::vector<hsize_t> extents(static_cast<std::size_t>(H5Sget_simple_extent_ndims(space)));
    H5Sget_simple_extent_dims(space, extents.data(), nullptr);
    H5Sclose(space);
    H5Dclose(data);
    return {extents.begin(), extents.end()};
  }
  std::vector<long long> attribute(std::string const& object, char const* name, std::size_t count) const {
    std::vector<long long> values(count);
    hid_t const attribute = H5Aopen_by_name(id, object.c_str(), name, H5P_DEFAULT, H5P_DEFAULT);
    CHECK(H5Aread(attribute, H5T_NATIVE_LLONG, values.data()) >= 0);
    H5Aclose(attribute);
    return values;
  }

  /// Replaces an attribute by one of this value.
  void put(std::string const& object, char const* name, long long value) const {
    put(object, name, H5T_STD_I64LE, H5T_NATIVE_LLONG, &value);
  }
  void put(std::string const& object, char const* name, double value) const {
    put(object, name, H5T_IEEE_F64LE, H5T_NATIVE_DOUBLE, &value);
  }
  /// A dataset that claims `count` elements of a type, without having them.
  void put_hollow(std::string const& dataset, hid_t type, hsize_t count) const {
    hid_t const links = H5Pcreate(H5P_LINK_CREATE);
    H5Pset_create_intermediate_group(links, 1);
    hid_t const space = H5Screate_simple(1, &count, nullptr);
    hid_t const data = H5Dcreate2(id, dataset.c_str(), type, space, links, H5P_DEFAULT, H5P_DEFAULT);
    CHECK(data >= 0);
    H5Dclose(data);
    H5Sclose(space);
    H5Pclose(links);
  }

  hid_t id;

private:
  void put(std::string const& object, char const* name, hid_t stored, hid_t given, void const* value) const {
    if (H5Aexists_by_name(id, object.c_str(), name, H5P_DEFAULT) > 0) {
      H5Adelete_by_name(id, object.c_str(), name, H5P_DEFAULT);
    }
    hid_t const space = H5Screate(H5S_SCALAR);
    hid_t const attribute =
        H5Acreate_by_name(id, object.c_str(), name, stored, space, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
    CHECK(H5Awrite(attribute, given, value) >= 0);
    H5Aclose(attribute);
    H5Sclose(space);
  }
};

} // namespace kozero::test
