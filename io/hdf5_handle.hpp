#pragma once
// HDF5's C interface, made safe: identifiers that close themselves, failures that throw. Private to io/*.cpp.

#include "core/error.hpp"

#include <hdf5.h>

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace kozero::h5 {

/// What a group of calls is about, for its error: "<problem> (HDF5: <its own reason>); <advice>".
struct Job {
  std::string problem; // "cannot read dataset 'wte/m' of '/…/rank-00000.h5'"
  char const* advice;  // "resume from another checkpoint"
};

[[noreturn]] void fail(Job const& job);

/// The result of an HDF5 call, which is negative (identifiers, counts, herr_t) where it failed.
template <class Result>
Result checked(Job const& job, Result result) {
  if (result < 0) fail(job);
  return result;
}

/// Owns an identifier. Never throws in its destructor and does no collective work.
template <herr_t (*Close)(hid_t)>
class Handle {
public:
  Handle() = default;
  explicit Handle(hid_t id) : id_(id) {}
  Handle(Handle&& other) noexcept : id_(std::exchange(other.id_, H5I_INVALID_HID)) {}
  Handle& operator=(Handle&& other) noexcept {
    std::swap(id_, other.id_);
    return *this;
  }
  ~Handle() {
    if (id_ >= 0) Close(id_);
  }
  hid_t id() const { return id_; }
  /// For files that were written, where closing writes too. What failed to close is not closed again: HDF5 would crash.
  void close(Job const& job) {
    hid_t const id = std::exchange(id_, H5I_INVALID_HID);
    checked(job, Close(id));
  }

private:
  hid_t id_ = H5I_INVALID_HID;
};

using File = Handle<H5Fclose>;
using Group = Handle<H5Gclose>;
using Dataset = Handle<H5Dclose>;
using Dataspace = Handle<H5Sclose>;
using Datatype = Handle<H5Tclose>;
using Attribute = Handle<H5Aclose>;
using Properties = Handle<H5Pclose>;

/// Must come before any other call of HDF5 in a thread; whoever calls HDF5 without a file calls it first.
void prepare_library();

File create_file(std::filesystem::path const& path, Job const& job);
/// For reading; a plain file.
File open_file(std::filesystem::path const& path, Job const& job);

/// The system's descriptor of a file.
int descriptor_of(Job const& job, hid_t file);

/// What is in the file itself: an Error where a part of `path` is a link to elsewhere, or where the elements of a
/// dataset are in other files.
Group open_group(Job const& job, hid_t file, std::string const& path);
Dataset open_dataset(Job const& job, hid_t file, std::string const& path);
/// One whose elements may be in other files, to look at it alone.
Dataset open_any_dataset(Job const& job, hid_t file, std::string const& path);

/// Bytes of the file that an object is in. Nothing in it can be larger, whatever it claims.
std::int64_t file_bytes(Job const& job, hid_t object);

/// The attribute with the checksums of a dataset: XXH3-128 as two words, high and low.
inline constexpr char const* checksum_name = "xxh3_128";

Dataspace simple_space(Job const& job, std::int64_t count);

void put(Job const& job, hid_t object, char const* name, std::int64_t value);
void put(Job const& job, hid_t object, char const* name, double value);
void put(Job const& job, hid_t object, char const* name, std::span<std::int64_t const> values);
void put(Job const& job, hid_t object, char const* name, std::span<std::uint64_t const> values);
void put(Job const& job, hid_t object, char const* name, std::string const& text);
bool has_attribute(Job const& job, hid_t object, char const* name);
std::int64_t get_integer(Job const& job, hid_t object, char const* name);
double get_number(Job const& job, hid_t object, char const* name);
std::vector<std::int64_t> get_integers(Job const& job, hid_t object, char const* name);
std::vector<std::uint64_t> get_words(Job const& job, hid_t object, char const* name);
std::string get_text(Job const& job, hid_t object, char const* name);

/// A text of any length as a dataset, verified when it is read. By our own checksum, since HDF5's filters take a
/// chunked dataset, whose index is not checked: flip a bit there and the text reads as empty, without an error.
void put_long_text(Job const& job, hid_t group, char const* name, std::string const& text);
std::string get_long_text(Job const& job, hid_t group, char const* name);

/// The names of what a group holds, in no particular order.
std::vector<std::string> members(Job const& job, hid_t group);

} // namespace kozero::h5

/// Calls HDF5; a failure is an Error. H5Xxx(…) is evaluated once.
#define KOZERO_HDF5_CALL(job, ...) ::kozero::h5::checked((job), (__VA_ARGS__))
