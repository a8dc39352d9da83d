#include "config/compare.hpp"

#include <algorithm>

namespace kozero {

namespace {

bool are_topology(Config const& a, Config const& b) {
  return a.run.reproducibility == Reproducibility::topology && b.run.reproducibility == Reproducibility::topology;
}

/// Offload changes where state lives, and no bit; its delay does.
bool same_delay(OffloadConfig const& a, OffloadConfig const& b) {
  return a.delays() == b.delays() && (!a.delays() || a.delayed_update == b.delayed_update);
}

} // namespace

std::vector<Difference> compare_decks(Config const& checkpoint, Config const& run) {
  Config old_config = checkpoint;
  Config new_config = run;
  auto const old_keys = keys_of(old_config);
  auto const new_keys = keys_of(new_config);
  std::vector<Difference> differences;
  for (auto const& old_key : old_keys) {
    auto const new_key = std::ranges::find(new_keys, old_key.path, &Key::path);
    if (new_key == new_keys.end()) continue; // of another family, which is a difference by itself
    std::string before = text_of(old_key);
    std::string now = text_of(*new_key);
    if (before == now) continue;
    // The batch as a whole is compared apart, as it is of all these keys and the number of ranks.
    bool const of_topology =
        old_key.path == "zero.stage" || old_key.path == "batch.accumulate" || old_key.path == "batch.global";
    bool const harmless = (of_topology && are_topology(checkpoint, run)) ||
                          (old_key.section() == "offload" && same_delay(checkpoint.offload, run.offload));
    differences.push_back(
        {old_key.path, std::move(before), std::move(now), harmless ? Severity::harmless : old_key.severity});
  }
  return differences;
}

} // namespace kozero
