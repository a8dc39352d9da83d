#pragma once
// The HDF5 files of a checkpoint folder. Private to io.
//
// checkpoint.h5    attributes format, format_version, version, updates_applied, …; dataset /deck
// rank-00000.h5    attributes format, format_version, rank, ranks, updates_applied
//   /<tensor>/<kind>   the elements [begin, begin + extent) of the flattened tensor, contiguous, little endian
//     begin              in elements
//     shape              of the whole tensor
//     checksum_elements  the dataset is checked in pieces of this many elements, the last one shorter
//     xxh3_128           (high, low) of each piece
//
// A rank that has nothing of a tensor has no dataset of it. What is in several pieces in memory is one dataset here.

#include "io/checkpoint.hpp"
#include "io/checkpoint_holding.hpp"
#include "io/hdf5_handle.hpp"

#include <array>
#include <optional>

namespace kozero::checkpoint {

/// What each rank file says of itself, so that files of two checkpoints are never mixed.
struct Stamp {
  std::int64_t rank = 0;
  std::int64_t ranks = 1;
  std::int64_t updates_applied = 0;
  friend bool operator==(Stamp const&, Stamp const&) = default;
};

void write_info(std::filesystem::path const& path, CheckpointInfo const& info);
CheckpointInfo read_info(std::filesystem::path const& path);

void write_rank_file(std::filesystem::path const& path, Stamp const& stamp, std::span<Holding const> holdings);

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

/// A dataset of a rank file.
struct Piece {
  std::string tensor; // "wte/m"
  std::vector<std::int64_t> shape;
  DType type = DType::f32;
  Interval interval;
};

/// A rank file that is read.
class RankFile {
public:
  RankFile(std::filesystem::path path, Stamp const& expected);
  /// What is in it.
  std::vector<Piece> pieces() const;
  /// Elements `part` of a piece to their place in the entry's memory. Both hold them.
  void read(Piece const& piece, Interval part, StateEntry const& entry) const;

private:
  std::filesystem::path path_;
  Types types_;
  h5::File file_;
};

} // namespace kozero::checkpoint
