#pragma once
// What the files of a checkpoint have in common: how they name their format, and the types of their elements. Private
// to io.

#include "core/dtype.hpp"
#include "io/hdf5_handle.hpp"

#include <filesystem>
#include <optional>
#include <string>

namespace kozero::checkpoint {

inline constexpr char const* info_format = "kozero checkpoint";
inline constexpr char const* rank_format = "kozero checkpoint rank";
inline constexpr char const* write_advice = "make room or set run.dir to another disk";
inline constexpr char const* read_advice = "the file is damaged or unreadable: resume from another checkpoint";

h5::Job writing(std::filesystem::path const& file);
h5::Job reading(std::filesystem::path const& file);
h5::Job reading(std::filesystem::path const& file, std::string const& dataset);

void put_format(h5::Job const& job, hid_t file, char const* format);
/// The file's format_version. Error where the file is of another format, or of a version that is not read here.
std::int64_t require_format(h5::Job const& job, std::filesystem::path const& path, hid_t file, char const* format);

/// The HDF5 types of our element types.
class Types {
public:
  Types();
  hid_t operator[](DType type) const;
  std::optional<DType> find(hid_t type) const;

private:
  h5::Datatype bf16_;
  h5::Datatype f16_;
};

} // namespace kozero::checkpoint
