#include "io/checkpoint_file.hpp"

#include "core/hash.hpp"
#include "core/views.hpp"

#include <fmt/ranges.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <limits>

namespace kozero::checkpoint {

namespace fs = std::filesystem;

static_assert(std::endian::native == std::endian::little, "memory is written as it is");

namespace {

constexpr std::int64_t format_version = 1;
constexpr char const* info_format = "kozero checkpoint";
constexpr char const* rank_format = "kozero checkpoint rank";
constexpr char const* write_advice = "make room or set run.dir to another disk";
constexpr char const* read_advice = "the file is damaged or unreadable: resume from another checkpoint";

using Bytes = std::vector<unsigned char>;

/// Elements of a checksum. HDF5 keeps at most 64 KiB in an attribute: 4096 checksums of 16 bytes.
std::int64_t checksum_elements(std::int64_t count) {
  constexpr std::int64_t least = 1 << 20;
  constexpr std::int64_t most_checksums = 4000;
  return std::max(least, (count + most_checksums - 1) / most_checksums);
}

h5::Job writing(fs::path const& file) { return {fmt::format("cannot write '{}'", file.string()), write_advice}; }

h5::Job reading(fs::path const& file) { return {fmt::format("cannot read '{}'", file.string()), read_advice}; }

h5::Job reading(fs::path const& file, std::string const& tensor) {
  return {fmt::format("cannot read dataset '{}' of '{}'", tensor, file.string()), read_advice};
}

// Memory that host code cannot touch is copied piece by piece through a buffer.
bool host_reaches(Space space) { return space != Space::device || host_reaches_device; }

using HostBytes = Kokkos::View<unsigned char*, HostMemory, Unmanaged>;
using DeviceBytes = Vec<unsigned char>;

unsigned char const* on_host(StateEntry const& entry, Interval part, Bytes& buffer) {
  auto* const data = address_of(entry, part.begin);
  if (host_reaches(entry.space)) return data;
  buffer.resize(static_cast<std::size_t>(part.size() * size_of(entry.type)));
  Kokkos::deep_copy(HostBytes(buffer.data(), buffer.size()), DeviceBytes(data, buffer.size()));
  return buffer.data();
}

void from_host(unsigned char* source, Interval part, StateEntry const& entry) {
  auto* const data = address_of(entry, part.begin);
  auto const bytes = static_cast<std::size_t>(part.size() * size_of(entry.type));
  if (host_reaches(entry.space)) {
    std::memcpy(data, source, bytes);
  } else {
    Kokkos::deep_copy(DeviceBytes(data, bytes), HostBytes(source, bytes));
  }
}

/// `count` values of one floating-point type as another.
void convert_floats(DType to_type, void* to, DType from_type, void const* from, std::int64_t count) {
  with_float_type(to_type, [&]<class To>(To) {
    with_float_type(from_type, [&]<class From>(From) {
      auto const* const values = static_cast<From const*>(from);
      for (std::int64_t i = 0; i < count; ++i) {
        static_cast<To*>(to)[i] = static_cast<To>(static_cast<float>(values[i]));
      }
    });
  });
}

/// Elements [begin, end) of a dataset and of nothing else.
struct Selection {
  Selection(h5::Job const& job, hid_t dataset, Interval part)
      : memory(h5::simple_space(job, part.size())), file(KOZERO_HDF5_CALL(job, H5Dget_space(dataset))) {
    auto const start = static_cast<hsize_t>(part.begin);
    auto const count = static_cast<hsize_t>(part.size());
    KOZERO_HDF5_CALL(job, H5Sselect_hyperslab(file.id(), H5S_SELECT_SET, &start, nullptr, &count, nullptr));
  }
  h5::Dataspace memory;
  h5::Dataspace file;
};

void put_format(h5::Job const& job, hid_t file, char const* format) {
  h5::put(job, file, "format", std::string(format));
  h5::put(job, file, "format_version", format_version);
}

void require_format(h5::Job const& job, fs::path const& path, hid_t file, char const* format) {
  bool const ours = h5::has_attribute(job, file, "format") && h5::get_text(job, file, "format") == format;
  KOZERO_REQUIRE(ours, "'{}' is not a '{}' file (its format attribute says otherwise); give a checkpoint of kozero",
                 path.string(), format);
  auto const version = h5::get_integer(job, file, "format_version");
  KOZERO_REQUIRE(version == format_version,
                 "'{}' has format version {} (this kozero reads version {}); read it with the kozero that wrote it",
                 path.string(), version, format_version);
}

void require_name(Holding const& holding, std::string const& name) {
  bool const usable = !name.empty() && name != "." && name.find('/') == std::string::npos;
  KOZERO_REQUIRE(usable, "'{}' of state '{}/{}' cannot name a dataset (HDF5 reserves '/' and '.'); rename it", name,
                 holding.name, holding.kind);
}

h5::Dataset create_dataset(h5::Job const& job, hid_t file, std::string const& name, hid_t type, std::int64_t count) {
  h5::Properties const links(KOZERO_HDF5_CALL(job, H5Pcreate(H5P_LINK_CREATE)));
  KOZERO_HDF5_CALL(job, H5Pset_create_intermediate_group(links.id(), 1));
  h5::Properties const creation(KOZERO_HDF5_CALL(job, H5Pcreate(H5P_DATASET_CREATE)));
  KOZERO_HDF5_CALL(job, H5Pset_layout(creation.id(), H5D_CONTIGUOUS));
  KOZERO_HDF5_CALL(job, H5Pset_fill_time(creation.id(), H5D_FILL_TIME_NEVER));
  auto const space = h5::simple_space(job, count);
  return h5::Dataset(
      KOZERO_HDF5_CALL(job, H5Dcreate2(file, name.c_str(), type, space.id(), links.id(), creation.id(), H5P_DEFAULT)));
}

void write_holding(fs::path const& path, hid_t file, Types const& types, Holding const& holding, Bytes& buffer) {
  require_name(holding, holding.name);
  require_name(holding, holding.kind);
  std::string const tensor = holding.name + "/" + holding.kind;
  h5::Job const job{fmt::format("cannot write dataset '{}' of '{}'", tensor, path.string()), write_advice};
  std::int64_t const count = holding.interval.size();
  hid_t const type = types[holding.type];
  auto dataset = create_dataset(job, file, tensor, type, count);

  std::int64_t const step = checksum_elements(count);
  std::vector<std::uint64_t> checksums;
  std::int64_t const begin = holding.interval.begin;
  auto piece = holding.pieces.begin();
  for (std::int64_t at = begin; at < holding.interval.end; at += step) {
    Interval const checked = intersect({at, at + step}, holding.interval);
    Hash128 hash;
    for (std::int64_t done = at; done < checked.end;) {
      Interval const part = intersect(piece->interval, checked);
      auto const* const data = on_host(*piece, part, buffer);
      hash.update(data, static_cast<std::size_t>(part.size() * size_of(holding.type)));
      Selection const selection(job, dataset.id(), {part.begin - begin, part.end - begin});
      KOZERO_HDF5_CALL(job,
                       H5Dwrite(dataset.id(), type, selection.memory.id(), selection.file.id(), H5P_DEFAULT, data));
      done = part.end;
      if (done == piece->interval.end) ++piece;
    }
    auto const digest = hash.digest();
    checksums.insert(checksums.end(), {digest.high, digest.low});
  }
  h5::put(job, dataset.id(), "begin", begin);
  h5::put(job, dataset.id(), "shape", std::span(holding.shape));
  h5::put(job, dataset.id(), "checksum_elements", step);
  h5::put(job, dataset.id(), h5::checksum_name, std::span<std::uint64_t const>(checksums));
  dataset.close(job);
}

// Attributes that only some runs have, and no older file.

void put_scales(h5::Job const& job, hid_t file, CheckpointInfo const& info) {
  if (auto const& state = info.loss_scale) {
    h5::put(job, file, "loss_scale", state->scale);
    h5::put(job, file, "loss_scale_clean_in_row", state->clean_in_row);
    h5::put(job, file, "loss_scale_overflows", state->overflows);
  }
  if (info.pending_gradient_scale) h5::put(job, file, "pending_gradient_scale", *info.pending_gradient_scale);
}

void get_scales(h5::Job const& job, hid_t file, CheckpointInfo& info) {
  if (h5::has_attribute(job, file, "loss_scale")) {
    info.loss_scale = LossScaleState{.scale = h5::get_number(job, file, "loss_scale"),
                                     .clean_in_row = h5::get_integer(job, file, "loss_scale_clean_in_row"),
                                     .overflows = h5::get_integer(job, file, "loss_scale_overflows")};
  }
  if (h5::has_attribute(job, file, "pending_gradient_scale")) {
    info.pending_gradient_scale = h5::get_number(job, file, "pending_gradient_scale");
  }
}

/// Of a shape that a file claims; nothing where it cannot be one.
std::optional<std::int64_t> element_count(std::vector<std::int64_t> const& shape) {
  std::int64_t count = 1;
  for (std::int64_t const extent : shape) {
    if (extent < 0 || (extent > 0 && count > std::numeric_limits<std::int64_t>::max() / extent)) return {};
    count *= extent;
  }
  return count;
}

} // namespace

void write_info(fs::path const& path, CheckpointInfo const& info) {
  auto const job = writing(path);
  auto file = h5::create_file(path, job);
  put_format(job, file.id(), info_format);
  h5::put(job, file.id(), "version", info.version);
  h5::put(job, file.id(), "batches_seen", info.counters.batches_seen);
  h5::put(job, file.id(), "updates_applied", info.counters.updates_applied);
  h5::put(job, file.id(), "updates_skipped", info.counters.updates_skipped);
  h5::put(job, file.id(), "ranks", info.ranks);
  h5::put(job, file.id(), "global_batch", info.global_batch);
  h5::put(job, file.id(), "state_hash", info.state_hash);
  h5::put(job, file.id(), "text", std::int64_t{info.text});
  put_scales(job, file.id(), info);
  h5::put_long_text(job, file.id(), "deck", info.deck);
  file.close(job);
}

CheckpointInfo read_info(fs::path const& path) {
  auto const job = reading(path);
  auto const file = h5::open_file(path, job);
  require_format(job, path, file.id(), info_format);
  CheckpointInfo info;
  info.version = h5::get_text(job, file.id(), "version");
  info.counters.batches_seen = h5::get_integer(job, file.id(), "batches_seen");
  info.counters.updates_applied = h5::get_integer(job, file.id(), "updates_applied");
  info.counters.updates_skipped = h5::get_integer(job, file.id(), "updates_skipped");
  info.ranks = h5::get_integer(job, file.id(), "ranks");
  info.global_batch = h5::get_integer(job, file.id(), "global_batch");
  info.state_hash = h5::get_text(job, file.id(), "state_hash");
  info.text = h5::get_integer(job, file.id(), "text") != 0;
  get_scales(job, file.id(), info);
  info.deck = h5::get_long_text(reading(path, "deck"), file.id(), "deck");
  return info;
}

void write_rank_file(fs::path const& path, Stamp const& stamp, std::span<Holding const> holdings) {
  auto const job = writing(path);
  auto file = h5::create_file(path, job);
  put_format(job, file.id(), rank_format);
  h5::put(job, file.id(), "rank", stamp.rank);
  h5::put(job, file.id(), "ranks", stamp.ranks);
  h5::put(job, file.id(), "updates_applied", stamp.updates_applied);
  Types const types;
  Bytes buffer;
  for (Holding const& holding : holdings) {
    if (!holding.interval.empty()) write_holding(path, file.id(), types, holding, buffer);
  }
  file.close(job);
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

RankFile::RankFile(fs::path path, Stamp const& expected) : path_(std::move(path)) {
  auto const job = reading(path_);
  file_ = h5::open_file(path_, job);
  require_format(job, path_, file_.id(), rank_format);
  Stamp const found{h5::get_integer(job, file_.id(), "rank"), h5::get_integer(job, file_.id(), "ranks"),
                    h5::get_integer(job, file_.id(), "updates_applied")};
  KOZERO_REQUIRE(found == expected,
                 "'{}' is of another checkpoint (it says rank {} of {} after update {}, expected rank {} of {} after "
                 "update {}); resume from another checkpoint",
                 path_.string(), found.rank, found.ranks, found.updates_applied, expected.rank, expected.ranks,
                 expected.updates_applied);
}

std::vector<Piece> RankFile::pieces() const {
  std::vector<Piece> pieces;
  auto const job = reading(path_);
  for (std::string const& name : h5::members(job, file_.id())) {
    auto const group_job = reading(path_, name);
    h5::Group const group(KOZERO_HDF5_CALL(group_job, H5Gopen2(file_.id(), name.c_str(), H5P_DEFAULT)));
    for (std::string const& kind : h5::members(group_job, group.id())) {
      Piece piece;
      piece.tensor = name + "/" + kind;
      auto const piece_job = reading(path_, piece.tensor);
      h5::Dataset const dataset(KOZERO_HDF5_CALL(piece_job, H5Dopen2(group.id(), kind.c_str(), H5P_DEFAULT)));
      h5::Datatype const type(KOZERO_HDF5_CALL(piece_job, H5Dget_type(dataset.id())));
      h5::Dataspace const space(KOZERO_HDF5_CALL(piece_job, H5Dget_space(dataset.id())));
      auto const found = types_.find(type.id());
      std::int64_t const begin = h5::get_integer(piece_job, dataset.id(), "begin");
      std::int64_t const count = KOZERO_HDF5_CALL(piece_job, H5Sget_simple_extent_npoints(space.id()));
      piece.shape = h5::get_integers(piece_job, dataset.id(), "shape");
      auto const whole = element_count(piece.shape);
      bool const sound = found && H5Sget_simple_extent_ndims(space.id()) == 1 && whole && begin >= 0 &&
                         begin <= *whole && count <= *whole - begin;
      KOZERO_REQUIRE(sound, "{} (elements {} from {} of shape [{}] make no sense); {}", piece_job.problem, count, begin,
                     fmt::join(piece.shape, ", "), read_advice);
      piece.type = *found;
      piece.interval = {begin, begin + count};
      pieces.push_back(std::move(piece));
    }
  }
  return pieces;
}

void RankFile::read(Piece const& piece, Interval part, StateEntry const& entry) const {
  auto const job = reading(path_, piece.tensor);
  h5::Dataset const dataset(KOZERO_HDF5_CALL(job, H5Dopen2(file_.id(), piece.tensor.c_str(), H5P_DEFAULT)));
  std::int64_t const count = piece.interval.size();
  std::int64_t const step = std::min(h5::get_integer(job, dataset.id(), "checksum_elements"), count);
  auto const checksums = h5::get_words(job, dataset.id(), h5::checksum_name);
  bool const complete = step > 0 && static_cast<std::int64_t>(checksums.size()) == 2 * ((count + step - 1) / step);
  KOZERO_REQUIRE(complete, "{} (it has not the checksums that it should have); {}", job.problem, read_advice);

  Bytes buffer(static_cast<std::size_t>(step * size_of(piece.type)));
  std::int64_t const first = (part.begin - piece.interval.begin) / step;
  for (std::int64_t c = first; piece.interval.begin + c * step < part.end; ++c) {
    Interval const local{c * step, std::min((c + 1) * step, count)};
    Selection const selection(job, dataset.id(), local);
    KOZERO_HDF5_CALL(job, H5Dread(dataset.id(), types_[piece.type], selection.memory.id(), selection.file.id(),
                                  H5P_DEFAULT, buffer.data()));
    auto const digest = Hash128::of(buffer.data(), static_cast<std::size_t>(local.size() * size_of(piece.type)));
    Hash128::Digest const expected{checksums[static_cast<std::size_t>(2 * c)],
                                   checksums[static_cast<std::size_t>(2 * c + 1)]};
    std::int64_t const at = piece.interval.begin + local.begin;
    KOZERO_REQUIRE(digest == expected, "{} (elements {} to {} have not the checksum they were written with); {}",
                   job.problem, at, at + local.size(), read_advice);
    Interval const wanted = intersect(part, {at, at + local.size()});
    unsigned char* const source = buffer.data() + (wanted.begin - at) * size_of(piece.type);
    if (piece.type == entry.type) {
      from_host(source, wanted, entry);
    } else {
      Bytes converted(static_cast<std::size_t>(wanted.size() * size_of(entry.type)));
      convert_floats(entry.type, converted.data(), piece.type, source, wanted.size());
      from_host(converted.data(), wanted, entry);
    }
  }
}

} // namespace kozero::checkpoint
