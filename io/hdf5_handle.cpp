#include "io/hdf5_handle.hpp"

#include "core/hash.hpp"
#include "io/plain_file.hpp"
#include "io/system_error.hpp"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <string_view>

namespace kozero::h5 {

void prepare_library() {
  static bool const ready = [] {
    // At exit HDF5 would try again to write files that it could not write, and 1.10 crashes on that.
    return H5dont_atexit() >= 0;
  }();
  thread_local herr_t const is_quiet = H5Eset_auto2(H5E_DEFAULT, nullptr, nullptr); // errors are each thread's own
  KOZERO_REQUIRE(ready && is_quiet >= 0, "HDF5 was used before it was prepared (a fault of kozero); please report it");
}

namespace {

struct Reason {
  std::string text;
  int cause = 0; // errno of a system call that failed
};

/// The number behind "errno = " in a description; 0 where there is none.
int errno_in(std::string const& text) {
  constexpr std::string_view mark = "errno = ";
  auto const at = text.find(mark);
  return at == std::string::npos ? 0 : std::atoi(text.c_str() + at + mark.size());
}

// The innermost description of HDF5's error stack: the first that an upward walk meets.
Reason reason() {
  std::string text;
  auto const visit = [](unsigned n, H5E_error2_t const* error, void* data) -> herr_t {
    if (n == 0 && error->desc) *static_cast<std::string*>(data) = error->desc;
    return 0;
  };
  H5Ewalk2(H5E_DEFAULT, H5E_WALK_UPWARD, visit, &text);
  H5Eclear2(H5E_DEFAULT);
  int const cause = errno_in(text);
  // Failed system calls come with times, addresses and descriptors; the system's own words are what helps.
  constexpr std::string_view mark = "error message = '";
  if (auto const at = text.find(mark); at != std::string::npos) {
    auto const begin = at + mark.size();
    text = text.substr(begin, text.find('\'', begin) - begin);
  }
  std::replace(text.begin(), text.end(), '\n', ' ');
  return {text.empty() ? "no reason given" : text, cause};
}

// Formats from HDF5 1.8 on checksum their own metadata. Locks fail on many parallel file systems, and a checkpoint is
// never read before it has its final name.
Properties file_access(Job const& job) {
  prepare_library();
  Properties access(KOZERO_HDF5_CALL(job, H5Pcreate(H5P_FILE_ACCESS)));
  KOZERO_HDF5_CALL(job, H5Pset_fapl_sec2(access.id())); // one file of the system, whatever HDF5_DRIVER asks for
  KOZERO_HDF5_CALL(job, H5Pset_libver_bounds(access.id(), H5F_LIBVER_V18, H5F_LIBVER_V110));
  KOZERO_HDF5_CALL(job, H5Pset_fclose_degree(access.id(), H5F_CLOSE_STRONG));
#if H5_VERSION_GE(1, 12, 1) || (H5_VERSION_GE(1, 10, 7) && !H5_VERSION_GE(1, 12, 0))
  KOZERO_HDF5_CALL(job, H5Pset_file_locking(access.id(), false, true));
#else
  ::setenv("HDF5_USE_FILE_LOCKING", "FALSE", 0);
#endif
  return access;
}

Datatype text_type(Job const& job, std::size_t size) {
  Datatype type(KOZERO_HDF5_CALL(job, H5Tcopy(H5T_C_S1)));
  KOZERO_HDF5_CALL(job, H5Tset_size(type.id(), std::max<std::size_t>(size, 1)));
  KOZERO_HDF5_CALL(job, H5Tset_strpad(type.id(), H5T_STR_NULLPAD));
  KOZERO_HDF5_CALL(job, H5Tset_cset(type.id(), H5T_CSET_UTF8));
  return type;
}

/// Before memory is taken for what a file says that it holds.
void require_fits_file(Job const& job, hid_t object, std::uint64_t bytes) {
  auto const most = static_cast<std::uint64_t>(file_bytes(job, object));
  KOZERO_REQUIRE(bytes <= most, "{} (it claims {} bytes or more of a file of {}); {}", job.problem, bytes, most,
                 job.advice);
}

// The size of a text, once it is sure that this is one of fixed length.
std::size_t text_size(Job const& job, Datatype const& type, Dataspace const& space) {
  bool const fits = H5Tget_class(type.id()) == H5T_STRING && H5Tis_variable_str(type.id()) == 0 &&
                    H5Sget_simple_extent_npoints(space.id()) == 1 && H5Tget_size(type.id()) > 0; // HDF5 divides by it
  KOZERO_REQUIRE(fits, "{} (not the kind of text that kozero writes); {}", job.problem, job.advice);
  return H5Tget_size(type.id());
}

std::string without_padding(std::string text) {
  text.resize(std::min(text.size(), text.find('\0')));
  return text;
}

/// Looks at the link of each part of the path before it is followed.
void require_no_link_elsewhere(Job const& job, hid_t file, std::string const& path) {
  for (std::size_t end = 0; end != std::string::npos;) {
    end = path.find('/', end + 1);
    std::string const part = path.substr(0, end);
    H5L_info_t link = {};
    KOZERO_HDF5_CALL(job, H5Lget_info(file, part.c_str(), &link, H5P_DEFAULT));
    KOZERO_REQUIRE(link.type == H5L_TYPE_HARD, "{} ('{}' is a link to elsewhere, which is not followed); {}",
                   job.problem, part, job.advice);
  }
}

Attribute create_attribute(Job const& job, hid_t object, char const* name, hid_t type, Dataspace const& space) {
  return Attribute(KOZERO_HDF5_CALL(job, H5Acreate2(object, name, type, space.id(), H5P_DEFAULT, H5P_DEFAULT)));
}

template <class T>
void put_scalar(Job const& job, hid_t object, char const* name, hid_t file_type, hid_t type, T value) {
  Dataspace const scalar(KOZERO_HDF5_CALL(job, H5Screate(H5S_SCALAR)));
  auto const attribute = create_attribute(job, object, name, file_type, scalar);
  KOZERO_HDF5_CALL(job, H5Awrite(attribute.id(), type, &value));
}

template <class T>
void put_array(Job const& job, hid_t object, char const* name, hid_t type, std::span<T const> values) {
  auto const attribute =
      create_attribute(job, object, name, type, simple_space(job, static_cast<std::int64_t>(values.size())));
  if (!values.empty()) KOZERO_HDF5_CALL(job, H5Awrite(attribute.id(), type, values.data()));
}

template <class T>
std::vector<T> get_array(Job const& job, hid_t object, char const* name, hid_t type) {
  Attribute const attribute(KOZERO_HDF5_CALL(job, H5Aopen(object, name, H5P_DEFAULT)));
  Dataspace const space(KOZERO_HDF5_CALL(job, H5Aget_space(attribute.id())));
  auto const count = static_cast<std::size_t>(KOZERO_HDF5_CALL(job, H5Sget_simple_extent_npoints(space.id())));
  require_fits_file(job, object, count);
  std::vector<T> values(count);
  if (!values.empty()) KOZERO_HDF5_CALL(job, H5Aread(attribute.id(), type, values.data()));
  return values;
}

template <class T>
T only_one(Job const& job, char const* name, std::vector<T> const& values) {
  KOZERO_REQUIRE(values.size() == 1, "{} (attribute '{}' is not one number); {}", job.problem, name, job.advice);
  return values.front();
}

} // namespace

void fail(Job const& job) {
  auto const [text, cause] = reason();
  throw Error(fmt::format("{} (HDF5: {}); {}", job.problem, text, remedy(cause, job.advice)));
}

File create_file(std::filesystem::path const& path, Job const& job) {
  auto const access = file_access(job);
  return File(KOZERO_HDF5_CALL(job, H5Fcreate(path.c_str(), H5F_ACC_TRUNC, H5P_DEFAULT, access.id())));
}

File open_file(std::filesystem::path const& path, Job const& job) {
  auto const other = other_than_file(path);
  KOZERO_REQUIRE(!other, "{} (it is {}, which is not followed or waited for); {}", job.problem, *other, job.advice);
  auto const access = file_access(job);
  return File(KOZERO_HDF5_CALL(job, H5Fopen(path.c_str(), H5F_ACC_RDONLY, access.id())));
}

int descriptor_of(Job const& job, hid_t file) {
  void* descriptor = nullptr;
  KOZERO_HDF5_CALL(job, H5Fget_vfd_handle(file, H5P_DEFAULT, &descriptor));
  return *static_cast<int const*>(descriptor);
}

Group open_group(Job const& job, hid_t file, std::string const& path) {
  require_no_link_elsewhere(job, file, path);
  return Group(KOZERO_HDF5_CALL(job, H5Gopen2(file, path.c_str(), H5P_DEFAULT)));
}

Dataset open_any_dataset(Job const& job, hid_t file, std::string const& path) {
  require_no_link_elsewhere(job, file, path);
  return Dataset(KOZERO_HDF5_CALL(job, H5Dopen2(file, path.c_str(), H5P_DEFAULT)));
}

Dataset open_dataset(Job const& job, hid_t file, std::string const& path) {
  Dataset dataset = open_any_dataset(job, file, path);
  Properties const creation(KOZERO_HDF5_CALL(job, H5Dget_create_plist(dataset.id())));
  bool const external = KOZERO_HDF5_CALL(job, H5Pget_external_count(creation.id())) > 0;
  bool const here = !external && KOZERO_HDF5_CALL(job, H5Pget_layout(creation.id())) != H5D_VIRTUAL;
  KOZERO_REQUIRE(here, "{} (its elements are in other files, which are not read); {}", job.problem, job.advice);
  return dataset;
}

std::int64_t file_bytes(Job const& job, hid_t object) {
  File const file(KOZERO_HDF5_CALL(job, H5Iget_file_id(object)));
  hsize_t bytes = 0;
  KOZERO_HDF5_CALL(job, H5Fget_filesize(file.id(), &bytes));
  return static_cast<std::int64_t>(bytes);
}

Dataspace simple_space(Job const& job, std::int64_t count) {
  auto const extent = static_cast<hsize_t>(count);
  return Dataspace(KOZERO_HDF5_CALL(job, H5Screate_simple(1, &extent, nullptr)));
}

void put(Job const& job, hid_t object, char const* name, std::int64_t value) {
  put_scalar(job, object, name, H5T_STD_I64LE, H5T_NATIVE_INT64, value);
}

void put(Job const& job, hid_t object, char const* name, double value) {
  put_scalar(job, object, name, H5T_IEEE_F64LE, H5T_NATIVE_DOUBLE, value);
}

void put(Job const& job, hid_t object, char const* name, std::span<std::int64_t const> values) {
  put_array(job, object, name, H5T_STD_I64LE, values);
}

void put(Job const& job, hid_t object, char const* name, std::span<std::uint64_t const> values) {
  put_array(job, object, name, H5T_STD_U64LE, values);
}

void put(Job const& job, hid_t object, char const* name, std::string const& text) {
  auto const type = text_type(job, text.size());
  Dataspace const scalar(KOZERO_HDF5_CALL(job, H5Screate(H5S_SCALAR)));
  auto const attribute = create_attribute(job, object, name, type.id(), scalar);
  KOZERO_HDF5_CALL(job, H5Awrite(attribute.id(), type.id(), text.c_str()));
}

bool has_attribute(Job const& job, hid_t object, char const* name) {
  return KOZERO_HDF5_CALL(job, H5Aexists(object, name)) > 0;
}

std::int64_t get_integer(Job const& job, hid_t object, char const* name) {
  return only_one(job, name, get_integers(job, object, name));
}

double get_number(Job const& job, hid_t object, char const* name) {
  return only_one(job, name, get_array<double>(job, object, name, H5T_NATIVE_DOUBLE));
}

std::vector<std::int64_t> get_integers(Job const& job, hid_t object, char const* name) {
  return get_array<std::int64_t>(job, object, name, H5T_NATIVE_INT64);
}

std::vector<std::uint64_t> get_words(Job const& job, hid_t object, char const* name) {
  return get_array<std::uint64_t>(job, object, name, H5T_NATIVE_UINT64);
}

std::string get_text(Job const& job, hid_t object, char const* name) {
  Attribute const attribute(KOZERO_HDF5_CALL(job, H5Aopen(object, name, H5P_DEFAULT)));
  Datatype const type(KOZERO_HDF5_CALL(job, H5Aget_type(attribute.id())));
  Dataspace const space(KOZERO_HDF5_CALL(job, H5Aget_space(attribute.id())));
  std::size_t const size = text_size(job, type, space);
  require_fits_file(job, object, size);
  std::string text(size, '\0');
  KOZERO_HDF5_CALL(job, H5Aread(attribute.id(), type.id(), text.data()));
  return without_padding(std::move(text));
}

void put_long_text(Job const& job, hid_t group, char const* name, std::string const& text) {
  auto const type = text_type(job, text.size());
  auto const space = simple_space(job, 1);
  Dataset dataset(
      KOZERO_HDF5_CALL(job, H5Dcreate2(group, name, type.id(), space.id(), H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT)));
  KOZERO_HDF5_CALL(job, H5Dwrite(dataset.id(), type.id(), H5S_ALL, H5S_ALL, H5P_DEFAULT, text.c_str()));
  auto const digest = Hash128::of(text.data(), text.size());
  put(job, dataset.id(), checksum_name, std::array{digest.high, digest.low});
  dataset.close(job);
}

std::string get_long_text(Job const& job, hid_t group, char const* name) {
  auto const dataset = open_dataset(job, group, name);
  Datatype const type(KOZERO_HDF5_CALL(job, H5Dget_type(dataset.id())));
  Dataspace const space(KOZERO_HDF5_CALL(job, H5Dget_space(dataset.id())));
  std::size_t const size = text_size(job, type, space);
  require_fits_file(job, group, size);
  std::string text(size, '\0');
  KOZERO_HDF5_CALL(job, H5Dread(dataset.id(), type.id(), H5S_ALL, H5S_ALL, H5P_DEFAULT, text.data()));
  text = without_padding(std::move(text));
  auto const digest = Hash128::of(text.data(), text.size());
  bool const intact = get_words(job, dataset.id(), checksum_name) == std::vector{digest.high, digest.low};
  KOZERO_REQUIRE(intact, "{} (it has not the checksum that it was written with); {}", job.problem, job.advice);
  return text;
}

std::vector<std::string> members(Job const& job, hid_t group) {
  std::vector<std::string> names;
  // The record's type differs between versions of HDF5, so it is left open.
  auto const visit = [](hid_t, char const* name, auto const*, void* data) -> herr_t {
    static_cast<std::vector<std::string>*>(data)->emplace_back(name);
    return 0;
  };
  KOZERO_HDF5_CALL(job, H5Literate(group, H5_INDEX_NAME, H5_ITER_NATIVE, nullptr, visit, &names));
  return names;
}

} // namespace kozero::h5
