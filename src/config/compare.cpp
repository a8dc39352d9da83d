#include "config/compare.hpp"

namespace kozero {

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
    differences.push_back({old_keys[i].path, std::move(before), std::move(now), old_keys[i].severity});
  }
  return differences;
}

} // namespace kozero
