#include "io/deck_family.hpp"

#include "config/model_family.hpp"
#include "io/yaml_tree.hpp"

#include <algorithm>

namespace kozero {

namespace {

/// The value of a key, or nothing where `map` is none or has no such key.
YamlNode const* entry_of(YamlNode const& map, std::string_view name) {
  auto const entry = std::ranges::find(map.entries, name, [](auto const& e) { return std::string_view(e.key.text); });
  return entry == map.entries.end() ? nullptr : &entry->value;
}

/// Takes the family that stands at that path of a document, if one does.
void look(YamlTree const& tree, std::vector<std::string_view> const& path, std::string& found) {
  YamlNode const* node = tree.broken ? nullptr : &tree.root;
  for (auto const name : path) node = node ? entry_of(*node, name) : nullptr;
  auto const names_it = [&](auto const& family) { return node && family->name() == node->text; };
  if (std::ranges::any_of(model_families(), names_it)) found = node->text;
}

} // namespace

std::string family_of_deck(std::string_view text, std::vector<std::string> const& overrides) {
  std::string found = ModelConfig().family;
  YamlTree const deck = read_yaml(text);
  look(deck, {"model", "family"}, found);
  look(deck, {"model.family"}, found);
  for (std::string_view const override_text : overrides) {
    std::size_t const equals = override_text.find('=');
    if (equals == std::string_view::npos) continue;
    std::string_view const path = override_text.substr(0, equals);
    std::string_view const value = override_text.substr(equals + 1);
    if (path == "model") look(read_yaml(value), {"family"}, found);
    if (path == "model.family") look(read_yaml(value), {}, found);
  }
  return found;
}

} // namespace kozero
