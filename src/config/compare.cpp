#include "config/compare.hpp"

namespace kozero {

namespace {

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
  for (std::size_t i = 0; i < old_keys.size(); ++i) {
    std::string before = text_of(old_keys[i]);
    std::string now = text_of(new_keys[i]);
    if (before == now) continue;
    bool const harmless = old_keys[i].section() == "offload" && same_delay(checkpoint.offload, run.offload);
    differences.push_back(
        {old_keys[i].path, std::move(before), std::move(now), harmless ? Severity::harmless : old_keys[i].severity});
  }
  return differences;
}

} // namespace kozero
