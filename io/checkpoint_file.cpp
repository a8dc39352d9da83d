#include "io/checkpoint_file.hpp"

#include "core/hash.hpp"
#include "core/heartbeat.hpp"
#include "core/launch.hpp"
#include "io/checkpoint_memory.hpp"
#include "io/writeback.hpp"

#include <fmt/ranges.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstring>
#include <limits>

namespace kozero::checkpoint {

namespace fs = std::filesystem;

static_assert(std::endian::native == std::endian::little, "memory is written as it is");

namespace {

/// Elements of a checksum. HDF5 keeps at most 64 KiB in an attribute: 4096 checksums of 16 bytes.
std::int64_t checksum_elements(std::int64_t count) {
  constexpr std::int64_t least = 1 << 20;
  constexpr std::int64_t most_checksums = 4000;
  return std::max(least, (count + most_checksums - 1) / most_checksums);
}

/// Memory that host code cannot touch is copied part by part through a buffer.
unsigned char const* in_host_memory(StateEntry const& entry, Interval part, Bytes& buffer) {
  auto* const data = address_of(entry, part.begin);
  if (host_reaches(entry.space)) return data;
  buffer.resize(static_cast<std::size_t>(part.size() * size_of(entry.type)));
  copy(Lane(), on_host(buffer.data()), on_device(data), static_cast<std::int64_t>(buffer.size()));
  return buffer.data();
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

/// Writes the tensors of one open rank file.
class ShareWriter {
public:
  ShareWriter(fs::path const& path, h5::File const& file, std::function<void()> const& gets_on)
      : path_(path), file_(file.id()), writeback_(h5::descriptor_of(writing(path), file.id()), gets_on),
        gets_on_(gets_on) {}

  void write(TensorShare const& share) {
    std::string const tensor = share.name + "/" + share.kind;
    h5::Job const job{fmt::format("cannot write dataset '{}' of '{}'", tensor, path_.string()), write_advice};
    std::int64_t const count = share.interval.size();
    auto dataset = create_dataset(job, file_, tensor, types_[share.type], count);
    std::int64_t const step = checksum_elements(count);
    auto const checksums = write_elements(job, dataset, share, step);
    h5::put(job, dataset.id(), "begin", share.interval.begin);
    h5::put(job, dataset.id(), "shape", std::span(share.shape));
    h5::put(job, dataset.id(), "checksum_elements", step);
    h5::put(job, dataset.id(), h5::checksum_name, std::span<std::uint64_t const>(checksums));
    dataset.close(job);
  }

private:
  /// Returns the checksums of runs of `step` elements.
  std::vector<std::uint64_t> write_elements(h5::Job const& job, h5::Dataset const& dataset, TensorShare const& share,
                                            std::int64_t step) {
    std::vector<std::uint64_t> checksums;
    auto entry = share.entries.begin();
    for (std::int64_t at = share.interval.begin; at < share.interval.end; at += step) {
      Interval const checked = intersect({at, at + step}, share.interval);
      Hash128 hash;
      for (std::int64_t done = at; done < checked.end;) {
        Interval const part = intersect(entry->interval, checked);
        auto const* const data = in_host_memory(*entry, part, buffer_);
        std::int64_t const bytes = part.size() * size_of(share.type);
        hash.update(data, static_cast<std::size_t>(bytes));
        Selection const selection(job, dataset.id(),
                                  {part.begin - share.interval.begin, part.end - share.interval.begin});
        KOZERO_HDF5_CALL(job, H5Dwrite(dataset.id(), types_[share.type], selection.memory.id(), selection.file.id(),
                                       H5P_DEFAULT, data));
        gets_on_();
        KOZERO_REQUIRE(writeback_.wrote(bytes), "{} ({}); {}", job.problem, std::strerror(errno), job.advice);
        done = part.end;
        if (done == entry->interval.end) ++entry;
      }
      auto const digest = hash.digest();
      checksums.insert(checksums.end(), {digest.high, digest.low});
    }
    return checksums;
  }

  fs::path const& path_;
  hid_t file_;
  Types types_;
  Bytes buffer_;
  Writeback writeback_;
  std::function<void()> const& gets_on_;
};

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

void write_rank_file(fs::path const& path, Stamp const& stamp, std::span<TensorShare const> shares,
                     std::function<void()> const& gets_on) {
  auto const job = writing(path);
  auto file = h5::create_file(path, job);
  put_format(job, file.id(), rank_format);
  h5::put(job, file.id(), "rank", stamp.rank);
  h5::put(job, file.id(), "ranks", stamp.ranks);
  h5::put(job, file.id(), "updates_applied", stamp.updates_applied);
  h5::put(job, file.id(), save_id_name, stamp.save_id);
  ShareWriter writer(path, file, gets_on);
  for (TensorShare const& share : shares) {
    if (!share.interval.empty()) writer.write(share);
  }
  file.close(job);
}

RankFile::RankFile(fs::path path, Stamp const& expected) : path_(std::move(path)) {
  auto const job = reading(path_);
  file_ = h5::open_file(path_, job);
  std::int64_t const version = require_format(job, path_, file_.id(), rank_format);
  Stamp const found{h5::get_integer(job, file_.id(), "rank"), h5::get_integer(job, file_.id(), "ranks"),
                    h5::get_integer(job, file_.id(), "updates_applied"), get_save_id(job, file_.id()), version};
  KOZERO_REQUIRE(found == expected,
                 "'{}' is of another checkpoint (it says rank {} of {} after update {} in format version {}, expected "
                 "rank {} of {} after update {} in version {}; saves '{}' and '{}'); resume from another checkpoint",
                 path_.string(), found.rank, found.ranks, found.updates_applied, found.format_version, expected.rank,
                 expected.ranks, expected.updates_applied, expected.format_version, found.save_id, expected.save_id);
}

std::vector<StoredDataset> RankFile::datasets() const {
  std::vector<StoredDataset> datasets;
  auto const job = reading(path_);
  std::int64_t const file_bytes = h5::file_bytes(job, file_.id());
  for (std::string const& name : h5::members(job, file_.id())) {
    auto const group_job = reading(path_, name);
    auto const group = h5::open_group(group_job, file_.id(), name);
    for (std::string const& kind : h5::members(group_job, group.id())) {
      StoredDataset found;
      found.name = name + "/" + kind;
      auto const dataset_job = reading(path_, found.name);
      auto const dataset = h5::open_dataset(dataset_job, group.id(), kind);
      h5::Datatype const type(KOZERO_HDF5_CALL(dataset_job, H5Dget_type(dataset.id())));
      h5::Dataspace const space(KOZERO_HDF5_CALL(dataset_job, H5Dget_space(dataset.id())));
      auto const known = types_.find(type.id());
      std::int64_t const begin = h5::get_integer(dataset_job, dataset.id(), "begin");
      std::int64_t const count = KOZERO_HDF5_CALL(dataset_job, H5Sget_simple_extent_npoints(space.id()));
      found.shape = h5::get_integers(dataset_job, dataset.id(), "shape");
      auto const whole = element_count(found.shape);
      bool const sound = known && H5Sget_simple_extent_ndims(space.id()) == 1 && whole && begin >= 0 &&
                         begin <= *whole && count <= *whole - begin && count <= file_bytes / size_of(*known);
      KOZERO_REQUIRE(sound, "{} (elements {} from {} of shape [{}] make no sense); {}", dataset_job.problem, count,
                     begin, fmt::join(found.shape, ", "), read_advice);
      found.type = *known;
      found.interval = {begin, begin + count};
      datasets.push_back(std::move(found));
    }
  }
  return datasets;
}

void RankFile::read(StoredDataset const& stored, Interval part, Visit const& visit) const {
  auto const job = reading(path_, stored.name);
  auto const dataset = h5::open_dataset(job, file_.id(), stored.name);
  std::int64_t const count = stored.interval.size();
  std::int64_t const step = std::min(h5::get_integer(job, dataset.id(), "checksum_elements"), count);
  auto const checksums = h5::get_words(job, dataset.id(), h5::checksum_name);
  bool const complete = step > 0 && static_cast<std::int64_t>(checksums.size()) == 2 * ((count + step - 1) / step);
  KOZERO_REQUIRE(complete, "{} (it has not the checksums that it should have); {}", job.problem, read_advice);

  std::int64_t const width = size_of(stored.type);
  Bytes buffer(static_cast<std::size_t>(step * width));
  std::int64_t const first = (part.begin - stored.interval.begin) / step;
  for (std::int64_t c = first; stored.interval.begin + c * step < part.end; ++c) {
    Interval const local{c * step, std::min((c + 1) * step, count)};
    Selection const selection(job, dataset.id(), local);
    KOZERO_HDF5_CALL(job, H5Dread(dataset.id(), types_[stored.type], selection.memory.id(), selection.file.id(),
                                  H5P_DEFAULT, buffer.data()));
    heartbeat().beat();
    auto const digest = Hash128::of(buffer.data(), static_cast<std::size_t>(local.size() * width));
    Hash128::Digest const expected{checksums[static_cast<std::size_t>(2 * c)],
                                   checksums[static_cast<std::size_t>(2 * c + 1)]};
    std::int64_t const at = stored.interval.begin + local.begin;
    KOZERO_REQUIRE(digest == expected, "{} (elements {} to {} have not the checksum they were written with); {}",
                   job.problem, at, at + local.size(), read_advice);
    Interval const wanted = intersect(part, {at, at + local.size()});
    visit(wanted, buffer.data() + (wanted.begin - at) * width);
  }
}

} // namespace kozero::checkpoint
