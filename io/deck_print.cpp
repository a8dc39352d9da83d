// The deck written back: as YAML with origins, and as the reference page.
#include "config/model_family.hpp"
#include "config/schema.hpp"
#include "core/error.hpp"
#include "io/deck.hpp"

#include <algorithm>
#include <set>

namespace kozero {

namespace {

/// A string as YAML that reads back as this string.
std::string yaml_string(std::string const& text) {
  auto const alphanumeric = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
  };
  auto const plain = [&](char c) {
    return alphanumeric(c) || c == '.' || c == '/' || c == '_' || c == '-' || c == '+';
  };
  bool const is_null = text == "null" || text == "Null" || text == "NULL";
  if (!text.empty() && text.front() != '-' && text.front() != '+' && std::ranges::all_of(text, plain) &&
      std::ranges::any_of(text, alphanumeric) && !is_null) {
    return text;
  }
  std::string quoted = "\"";
  for (char const c : text) {
    if (c == '"' || c == '\\') quoted += '\\';
    quoted += c;
  }
  return quoted + '"';
}

std::string comment(Origin const& origin, std::string const& name, std::string const& size) {
  switch (origin.kind) {
  case Origin::Kind::preset: return "default";
  case Origin::Kind::deck: return fmt::format("{}:{}", name, origin.line);
  case Origin::Kind::named_size: return size;
  case Origin::Kind::command_line: return "command line";
  }
  return "?";
}

/// Opens the maps around `path` that the key before it, `previous`, was not in.
void open_maps(std::string& yaml, std::string const& path, std::string const& previous) {
  for (std::size_t dot = path.find('.'), depth = 0; dot != std::string::npos; dot = path.find('.', dot + 1), ++depth) {
    if (previous.starts_with(path.substr(0, dot + 1))) continue;
    std::size_t const begin = depth == 0 ? 0 : path.rfind('.', dot - 1) + 1;
    yaml += std::string(2 * depth, ' ') + path.substr(begin, dot - begin) + ":\n";
  }
}

} // namespace

std::string print_deck(Config const& config, std::map<std::string, Origin> const& origins, std::string const& name) {
  // A name is any file's: nothing of it may end the comment.
  std::string label = name;
  std::ranges::replace_if(
      label, [](char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7f; }, '?');
  Config copy = config;
  std::string yaml;
  std::string previous;
  for (auto const& key : keys_of(copy)) {
    open_maps(yaml, key.path, previous);
    auto const depth = static_cast<std::size_t>(std::ranges::count(key.path, '.'));
    bool const is_string = std::holds_alternative<std::string*>(key.slot);
    std::string const value = is_string ? yaml_string(text_of(key)) : text_of(key);
    std::string const line =
        fmt::format("{}{}: {}", std::string(2 * depth, ' '), key.path.substr(key.path.rfind('.') + 1), value);
    auto const origin = origins.find(key.path);
    yaml += origin == origins.end()
                ? line + '\n'
                : fmt::format("{:<40}  # {}\n", line, comment(origin->second, label, config.model.size));
    previous = key.path;
  }
  return yaml;
}

namespace {

constexpr std::string_view table_head = "| key | meaning | values | default | on resume |\n|---|---|---|---|---|\n";

std::string table_row(std::string_view name, Key const& key) {
  std::string const preset = text_of(key);
  return fmt::format("| `{}` | {} | {} | {} | {} |\n", name, key.help, legal_values(key),
                     preset.empty() ? "" : "`" + preset + "`", name_of(key.severity));
}

/// The keys and the published shapes of one family.
std::string family_reference(ModelFamily const& family) {
  std::string page = fmt::format("\n### family: {}\n\n", family.name()) + std::string(table_head);
  FamilyKeys own = family.defaults();
  for (auto const& key : family.keys(own)) page += table_row(key.path, key);
  auto const sizes = family.sizes();
  if (sizes.empty()) return page;
  std::string names, lines;
  for (auto const& [name, value] : sizes.front().values) {
    names += fmt::format(" {} |", name);
    lines += "---|";
  }
  page += fmt::format("\n| size |{}\n|---|{}\n", names, lines);
  for (auto const& size : sizes) {
    page += fmt::format("| `{}` |", size.name);
    for (auto const& [name, value] : size.values) page += fmt::format(" {} |", value);
    page += '\n';
  }
  return page;
}

} // namespace

std::string deck_reference() {
  std::string page = R"(# The input deck

A deck is a YAML file of sections, each a map of keys. This page is made from `src/config/schema.cpp` and the
families of models, whose tables also read, check and print decks; a test compares them.

- A key that is left out has its default. `kozero check DECK` prints the deck with every value and where it comes from.
- The command line overrides the deck: `kozero train DECK optimizer.lr=1e-4 'optimizer.betas=[0.9, 0.99]'`. The value is
  YAML; the last of several wins.
- Reading is strict: a key that is not on this page, a key twice, a value of another type, a unit that is missing or
  unknown are faults. All of them are listed at once, as `deck.yaml:14:5: …`, before anything is allocated, and the exit
  status is 2. Anchors, aliases, tags and several documents are refused too.
- Whole numbers have all their digits, or one of the units k, M, G (10^3, 10^6, 10^9): `50000`, `50k`, not `5e4`. Real
  numbers are finite: `1e-4`, `0.1`. Booleans are `true` and `false`. Numbers stand without quotes.
- Sizes have a unit: B, kB, MB, GB, TB (powers of 1000), KiB, MiB, GiB, TiB (powers of 1024). So have times: ms, s, min,
  h, d.
- The column "on resume" says what a key does when it differs from that of the checkpoint a run goes on from: harmless;
  changes numerics (allowed, listed, and the run is not the one that would have gone on); forbidden (refused).
)";
  Config config;
  auto const keys = keys_of(config);
  std::set<std::string> own; // of the family
  for (auto const& key : model_family(config.model.family).keys(config.model.own)) own.insert(key.path);
  for (auto const& section : sections()) {
    page += fmt::format("\n## {}\n\n{}\n\n", section.name, section.help) + std::string(table_head);
    bool const is_model = section.name == "model";
    for (auto const& key : keys) {
      if (key.section() != section.name) continue;
      std::string const name = key.path.substr(section.name.size() + 1);
      if (!is_model || !own.contains(name)) page += table_row(name, key);
    }
    if (!is_model) continue;
    for (auto const& family : model_families()) page += family_reference(*family);
  }
  return page;
}

} // namespace kozero
