#pragma once
// tensors.h5 of a checkpoint: each tensor whole, in its shape, for any reader of HDF5. Its datasets are virtual: their
// elements are those of the rank files beside it. kozero itself reads the rank files alone. Private to io.
//
//   /parameters/<tensor>      the masters
//   /optimizer/<kind>/<tensor>   m, v, and the gradient of a pending update

#include "comm/ranks.hpp"
#include "io/checkpoint_share.hpp"

#include <filesystem>
#include <span>
#include <string>
#include <vector>

namespace kozero::checkpoint {

/// In the folder of a checkpoint. One without it is whole for kozero.
inline constexpr char const* whole_name = "tensors.h5";

/// One tensor and kind over the files of all ranks.
struct WholeTensor {
  struct Part {
    std::int64_t rank = 0;
    Interval interval;
  };
  std::string name;
  std::string kind;
  std::vector<std::int64_t> shape;
  DType type = DType::f32;
  std::vector<Part> parts = {}; // none is empty
};

/// What the ranks' shares are together, on every rank. SharedError where they are not of the same tensors. Collective.
std::vector<WholeTensor> gather_whole(std::span<TensorShare const> own, Ranks& ranks);

void write_whole(std::filesystem::path const& path, std::span<WholeTensor const> tensors);

/// Compares what the file maps with the tensors of the rank files beside it. A line for each fault; Error where the
/// file cannot be read.
std::vector<std::string> faults_of_whole(std::filesystem::path const& path, std::span<WholeTensor const> tensors);

/// A run of whole slices of a tensor along one dimension.
struct Box {
  std::vector<std::int64_t> begin;
  std::vector<std::int64_t> extent;
};

/// Elements `part` of the flattened tensor as boxes, in their order: 2n - 1 at most for n dimensions.
std::vector<Box> boxes_of(Interval part, std::vector<std::int64_t> const& shape);

} // namespace kozero::checkpoint
