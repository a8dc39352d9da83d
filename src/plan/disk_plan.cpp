#include "plan/disk_plan.hpp"

#include "model/families.hpp"

#include <algorithm>
#include <limits>

namespace kozero {

namespace {

std::int64_t most_saves(Config const& config) {
  Every const& every = config.checkpoint.every;
  if (every.seconds) return std::numeric_limits<std::int64_t>::max();
  return every.updates == 0 ? 1 : config.run.updates / every.updates + 1;
}

} // namespace

std::int64_t checkpoint_bytes(std::int64_t parameters) {
  return 12 * parameters; // master, m and v in fp32
}

std::int64_t checkpoints_kept(CheckpointConfig const& checkpoint) {
  constexpr std::int64_t most = std::numeric_limits<std::int64_t>::max() / 2;
  return std::min(checkpoint.keep, most) + std::min(checkpoint.keep_best, most);
}

std::int64_t planned_disk_bytes(Config const& config, std::int64_t checkpoints_there) {
  std::int64_t const kept = checkpoints_kept(config.checkpoint);
  std::int64_t const more = std::min(std::max<std::int64_t>(kept - checkpoints_there, 0) + 1, most_saves(config));
  std::int64_t const each = checkpoint_bytes(parameter_count(architecture_of(config.model)->layout()));
  constexpr std::int64_t most = std::numeric_limits<std::int64_t>::max();
  return each > 0 && more > most / each ? most : more * each;
}

} // namespace kozero
