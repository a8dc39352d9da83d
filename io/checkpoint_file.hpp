#pragma once
// The HDF5 files of a checkpoint folder. Private to io.
//
// checkpoint.h5    attributes format, format_version, version, updates_applied, …; dataset /deck
// rank-00000.h5    attributes format, format_version, rank, ranks, updates_applied, save_id
//   /<tensor>/<kind>   the elements [begin, begin + extent) of the flattened tensor, contiguous, little endian
//     begin              in elements
//     shape              of the whole tensor
//     checksum_elements  the dataset is checked in tiles of this many elements, the last one shorter
//     xxh3_128           (high, low) of each tile
//
// A rank that has nothing of a tensor has no dataset of it. What is in several pieces in memory is one dataset here.

#include "io/checkpoint.hpp"
#include "io/checkpoint_format.hpp"
#include "io/checkpoint_share.hpp"

#include <functional>

namespace kozero::checkpoint {

/// What each rank file says of itself, so that files of two checkpoints are never mixed.
struct Stamp {
  std::int64_t rank = 0;
  std::int64_t ranks = 1;
  std::int64_t updates_applied = 0;
  std::string save_id = {}; // none in older files
  std::int64_t format_version = checkpoint_format_version;
  friend bool operator==(Stamp const&, Stamp const&) = default;
};

void write_info(std::filesystem::path const& path, CheckpointInfo const& info);
/// Its counts are such as a run can have; the sums and products that they are made for fit 64 bits.
CheckpointInfo read_info(std::filesystem::path const& path);
/// Its generation alone.
std::int64_t read_generation(std::filesystem::path const& path);

/// Of the save that a file is of; nothing in older ones.
inline constexpr char const* save_id_name = "save_id";
std::string get_save_id(h5::Job const& job, hid_t file);

/// The stamp's format_version is the one that is written today. `gets_on` is called after each part.
void write_rank_file(std::filesystem::path const& path, Stamp const& stamp, std::span<TensorShare const> shares,
                     std::function<void()> const& gets_on);

/// A dataset of a rank file.
struct StoredDataset {
  std::string name;                // "wte.weight/m"
  std::vector<std::int64_t> shape; // of the whole tensor
  DType type = DType::f32;
  Interval interval;
};

/// A rank file that is read.
class RankFile {
public:
  RankFile(std::filesystem::path path, Stamp const& expected);
  /// What is in it. None is larger than the file.
  std::vector<StoredDataset> datasets() const;
  /// Some elements, in the dataset's type; the memory is good for the call alone.
  using Visit = std::function<void(Interval, unsigned char const*)>;
  /// Hands the elements `part` of a dataset, which must hold them, to `visit`: tile by tile, ascending, verified.
  void read(StoredDataset const& dataset, Interval part, Visit const& visit) const;

private:
  std::filesystem::path path_;
  Types types_;
  h5::File file_;
};

} // namespace kozero::checkpoint
