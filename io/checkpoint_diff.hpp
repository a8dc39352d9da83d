#pragma once
#include "io/checkpoint.hpp"

#include <functional>

namespace kozero {

/// A state array of both checkpoints.
struct ComparedArray {
  std::string name;
  std::string kind;
  std::vector<std::int64_t> shape;
};

/// Where and how much two checkpoints differ in arrays that both have.
struct CheckpointDifference {
  struct Element {
    std::string array = {};               // "wte.weight/m"
    std::int64_t index = 0;               // in the flattened tensor
    std::vector<std::int64_t> place = {}; // the same in its shape
    double a = 0, b = 0;
    double size() const; // |a - b|, infinite where one is no number
  };
  std::int64_t elements = 0; // compared
  std::int64_t arrays = 0;
  std::int64_t different = 0; // elements
  std::int64_t arrays_different = 0;
  std::optional<Element> first;   // in the order of the arrays
  std::optional<Element> largest; // the first of its size
};

/// A checkpoint, and where its tensors stand in it.
struct ComparedCheckpoint {
  CheckpointReader const& reader;
  FormerTensors const& former;
};

/// Compares the bits of all elements, in fp32. Reads both; memory for some tiles. `read` is called with bytes read so
/// far.
CheckpointDifference compare_checkpoints(ComparedCheckpoint const& a, ComparedCheckpoint const& b,
                                         std::span<ComparedArray const> arrays,
                                         std::function<void(std::int64_t)> const& read);

} // namespace kozero
