#pragma once
#include "config/config.hpp"

#include <cstdint>

namespace kozero {

/// Of the tensors of one checkpoint, all ranks together; names, shapes and checksums come on top.
std::int64_t checkpoint_bytes(std::int64_t parameters);

/// How many checkpoints may be there once a save has ended. One more is there while it goes on.
std::int64_t checkpoints_kept(CheckpointConfig const& checkpoint);

/// Bytes that a run's saves may take in its folder beside the checkpoints that it has: of so many as may come on top of
/// these, or of all that the run makes where that is less.
std::int64_t planned_disk_bytes(Config const& config, std::int64_t checkpoints_there);

} // namespace kozero
