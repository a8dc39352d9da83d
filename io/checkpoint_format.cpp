#include "io/checkpoint_format.hpp"

#include "io/checkpoint.hpp"

namespace kozero::checkpoint {

namespace fs = std::filesystem;

h5::Job writing(fs::path const& file) { return {fmt::format("cannot write '{}'", file.string()), write_advice}; }

h5::Job reading(fs::path const& file) { return {fmt::format("cannot read '{}'", file.string()), read_advice}; }

h5::Job reading(fs::path const& file, std::string const& dataset) {
  return {fmt::format("cannot read dataset '{}' of '{}'", dataset, file.string()), read_advice};
}

void put_format(h5::Job const& job, hid_t file, char const* format) {
  h5::put(job, file, "format", std::string(format));
  h5::put(job, file, "format_version", checkpoint_format_version);
}

std::int64_t require_format(h5::Job const& job, fs::path const& path, hid_t file, char const* format) {
  bool const ours = h5::has_attribute(job, file, "format") && h5::get_text(job, file, "format") == format;
  KOZERO_REQUIRE(ours, "'{}' is not a '{}' file (its format attribute says otherwise); give a checkpoint of kozero",
                 path.string(), format);
  auto const version = h5::get_integer(job, file, "format_version");
  KOZERO_REQUIRE(
      version >= 1 && version <= checkpoint_format_version,
      "'{}' has format version {} (this kozero reads versions 1 to {}); read it with the kozero that wrote it",
      path.string(), version, checkpoint_format_version);
  return version;
}

namespace {

// A floating-point type of 16 bits as IEEE 754 would have it: sign, exponent, fraction from the top.
h5::Datatype make_half(h5::Job const& job, std::size_t exponent_bits) {
  std::size_t const fraction_bits = 15 - exponent_bits;
  std::size_t const bias = (std::size_t{1} << (exponent_bits - 1)) - 1;
  h5::Datatype type(KOZERO_HDF5_CALL(job, H5Tcopy(H5T_IEEE_F32LE)));
  KOZERO_HDF5_CALL(job, H5Tset_fields(type.id(), 15, fraction_bits, exponent_bits, 0, fraction_bits));
  KOZERO_HDF5_CALL(job, H5Tset_ebias(type.id(), bias));
  KOZERO_HDF5_CALL(job, H5Tset_size(type.id(), 2));
  return type;
}

} // namespace

Types::Types() {
  h5::prepare_library();
  h5::Job const job{"cannot describe floats of 16 bits", "use another version of HDF5"};
  bf16_ = make_half(job, 8);
  f16_ = make_half(job, 5);
}

hid_t Types::operator[](DType type) const {
  switch (type) {
  case DType::f32: return H5T_IEEE_F32LE;
  case DType::bf16: return bf16_.id();
  case DType::f16: return f16_.id();
  case DType::f64: return H5T_IEEE_F64LE;
  case DType::i64: return H5T_STD_I64LE;
  case DType::i32: return H5T_STD_I32LE;
  case DType::u8: return H5T_STD_U8LE;
  }
  return H5I_INVALID_HID;
}

std::optional<DType> Types::find(hid_t type) const {
  for (DType const candidate : {DType::f32, DType::bf16, DType::f16, DType::f64, DType::i64, DType::i32, DType::u8}) {
    if (H5Tequal((*this)[candidate], type) > 0) return candidate;
  }
  return {};
}

} // namespace kozero::checkpoint
