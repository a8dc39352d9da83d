#include "io/deck.hpp"

#include "config/model_family.hpp"
#include "config/schema.hpp"
#include "core/error.hpp"
#include "io/deck_family.hpp"
#include "io/foreign_words.hpp"
#include "io/suggest.hpp"
#include "io/yaml_tree.hpp"

#include <fmt/ranges.h>

#include <algorithm>
#include <set>
#include <tuple>

namespace kozero {

namespace {

using Kind = YamlNode::Kind;

std::string last_part(std::string const& path) { return path.substr(path.rfind('.') + 1); }

/// Text as messages show it: in quotes, and short.
std::string quoted(std::string text) {
  // Cut between UTF-8 characters.
  std::size_t cut = 60;
  while (cut < text.size() && cut > 0 && (static_cast<unsigned char>(text[cut]) & 0xc0u) == 0x80u) --cut;
  if (text.size() > cut) text = text.substr(0, cut) + "…";
  return fmt::format("'{}'", text);
}

std::string shown(YamlNode const& node) {
  switch (node.kind) {
  case Kind::scalar: return quoted(node.text);
  case Kind::sequence: return "a list [ ]";
  case Kind::map: return "a map { }";
  case Kind::null:
  case Kind::alias: break;
  }
  return "nothing";
}

/// Whether a checkpoint's tensors are of another model if the key has another value.
bool makes_model(Key const& key) { return key.section() == "model" && key.severity == Severity::forbidden; }

/// Gives `to` the value of `from`, which is the same key of another configuration.
void copy_value(Key const& to, Key const& from) {
  std::visit(
      [&]<class Slot>(Slot const& slot) {
        auto const& source = std::get<Slot>(from.slot);
        if constexpr (std::is_same_v<Slot, Choice>) {
          slot.set(source.get());
        } else {
          *slot = *source;
        }
      },
      to.slot);
}

/// What stands before '=' in an override.
bool is_key_path(std::string const& path) {
  auto const legal = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '.';
  };
  return !path.empty() && path.front() != '.' && path.back() != '.' && path.find("..") == std::string::npos &&
         std::ranges::all_of(path, legal);
}

/// Reads the deck, then the overrides, into one configuration, and collects all that is wrong with them.
class DeckReader {
public:
  explicit DeckReader(std::string name) : name_(std::move(name)) {}
  DeckReader(DeckReader const&) = delete;
  DeckReader& operator=(DeckReader const&) = delete;

  StoredDeck read_stored(std::string_view text) {
    choose_family(text, {});
    read_document(text);
    complete_named_size();
    for (auto const& key : keys_) {
      std::string const fault = unread_.contains(key.path) ? "" : limits_fault(key);
      if (fault.empty()) continue;
      Origin const& origin = origins_[key.path];
      add_fault(origin.line, origin.column, key.path, fault);
      unread_.insert(key.path);
    }
    auto const lost = [this](Key const& key) { return makes_model(key) && unread_.contains(key.path); };
    if (broken_ || std::ranges::any_of(keys_, lost)) {
      throw Error(fmt::format("the deck in the checkpoint does not say what its model is; read it with the kozero that "
                              "wrote it:\n{}",
                              fmt::join(sorted_messages(faults_), "\n")));
    }
    Config preset;
    preset.model = ModelConfig(config_.model.family);
    auto const presets = keys_of(preset);
    for (std::size_t i = 0; i < keys_.size(); ++i) {
      if (unread_.contains(keys_[i].path)) copy_value(keys_[i], presets[i]);
    }
    return {config_, unread_, sorted_messages(faults_)};
  }

  Deck read(std::string_view text, std::vector<std::string> const& overrides) {
    choose_family(text, overrides);
    read_document(text);
    for (auto const& override_text : overrides) read_override(override_text);
    complete_named_size();
    check_values();
    if (!faults_.empty()) throw InputError(fmt::format("{}", fmt::join(sorted_messages(faults_), "\n")));
    return {config_, origins_, print_deck(config_, origins_, name_), sorted_messages(warnings_)};
  }

private:
  struct Fault {
    bool command_line;
    int line, column; // 0 where the fault has no place in the deck
    std::string message;
  };

  // ---- the family, which says what keys there are

  void choose_family(std::string_view text, std::vector<std::string> const& overrides) {
    config_.model = ModelConfig(family_of_deck(text, overrides));
    keys_ = keys_of(config_);
    for (auto const& key : keys_) origins_[key.path] = {};
  }

  // ---- the two sources

  void read_document(std::string_view text) {
    YamlTree const tree = read_yaml(text);
    for (auto const& fault : tree.faults) add_fault(fault.line, fault.column, "", fault.text);
    if (tree.broken) {
      broken_ = true;
    } else if (tree.empty) {
      add_fault(0, 0, "", "the deck is empty; write at least data.train, the training file");
      broken_ = true;
    } else {
      read_map(tree.root, "");
    }
  }

  void read_override(std::string const& text) {
    from_command_line_ = true;
    std::size_t const equals = text.find('=');
    std::string const path = text.substr(0, equals);
    if (equals == std::string::npos || !is_key_path(path)) {
      add_fault(0, 0, "", quoted(text) + " is not key.path=value; write it like optimizer.lr=1e-4");
      return;
    }
    YamlTree tree = read_yaml(std::string_view(text).substr(equals + 1));
    for (auto const& fault : tree.faults) add_fault(0, 0, path, fault.text);
    if (!tree.broken) read_map(wrapped(std::move(tree.root), path), "");
  }

  /// {optimizer: {lr: value}} for "optimizer.lr".
  static YamlNode wrapped(YamlNode value, std::string path) {
    while (!path.empty()) {
      std::size_t const dot = path.rfind('.');
      YamlNode key;
      key.kind = Kind::scalar;
      key.text = last_part(path);
      YamlNode map;
      map.kind = Kind::map;
      map.entries.push_back({std::move(key), std::move(value)});
      value = std::move(map);
      path = dot == std::string::npos ? "" : path.substr(0, dot);
    }
    return value;
  }

  // ---- the tree

  void read_map(YamlNode const& node, std::string const& prefix) {
    std::string const section = prefix.empty() ? "" : prefix.substr(0, prefix.size() - 1);
    if (node.kind == Kind::alias) return;
    if (node.kind == Kind::null && !section.empty()) {
      add_fault(node, section, "has no keys in it; write some, or remove it");
      return;
    }
    if (node.kind != Kind::map) {
      broken_ |= section.empty() && !from_command_line_;
      add_fault(node, section,
                section.empty() ? fmt::format("the deck is not a map of sections (it is {}); write 'section:' and "
                                              "'  key: value' below it, with a blank after each ':'",
                                              shown(node))
                                : fmt::format("is a section (not {}); write its keys: {}", shown(node),
                                              joined(names_below(prefix))));
      return;
    }
    std::map<std::string, int> lines; // of the keys that were seen
    for (auto const& [key, value] : node.entries) {
      if (key.kind == Kind::alias) continue;
      if (key.kind != Kind::scalar) {
        add_fault(key, section, fmt::format("{} is not the name of a key; write one", shown(key)));
        continue;
      }
      auto const [first, is_new] = lines.emplace(key.text, key.line);
      if (is_new) {
        read_entry(key, value, prefix + key.text);
      } else {
        add_fault(key, from_command_line_ ? prefix + key.text : "",
                  fmt::format("duplicate key {} (first in line {}); remove one", shown(key), first->second));
      }
    }
  }

  void read_entry(YamlNode const& key, YamlNode const& value, std::string const& path) {
    auto const found = std::ranges::find(keys_, path, &Key::path);
    if (found != keys_.end()) {
      if (stands_already(key, path)) return;
      read_value(*found, value);
    } else if (!names_below(path + '.').empty()) {
      read_map(value, path + '.');
    } else {
      add_fault(key, from_command_line_ ? path : "",
                fmt::format("unknown key {}{}", shown(key), advice_about(key, value, path)));
    }
  }

  /// A key that the deck says twice, as "optimizer: {lr: …}" and as "optimizer.lr: …". The command line may say it
  /// again.
  bool stands_already(YamlNode const& key, std::string const& path) {
    if (from_command_line_) return false;
    auto const [first, is_new] = lines_.emplace(path, key.line);
    if (is_new) return false;
    add_fault(
        key, "",
        fmt::format("duplicate key {} ({} stands in line {} already); remove one", shown(key), path, first->second));
    return true;
  }

  void read_value(Key const& key, YamlNode const& node) {
    bool const is_pair = std::holds_alternative<std::array<double, 2>*>(key.slot);
    if (is_pair ? read_pair(key, node) : read_scalar(key, node, 0)) {
      unread_.erase(key.path);
      origins_[key.path] = from_command_line_ ? Origin{Origin::Kind::command_line, 0, 0}
                                              : Origin{Origin::Kind::deck, node.line, node.column};
    } else {
      unread_.insert(key.path);
    }
  }

  bool read_pair(Key const& key, YamlNode const& node) {
    if (node.kind != Kind::sequence) return read_scalar(key, node, 0) && refuse(key, node, "is one number");
    if (node.items.size() != 2) return refuse(key, node, fmt::format("is a list of {}", node.items.size()));
    bool const first = read_scalar(key, node.items[0], 0);
    bool const second = read_scalar(key, node.items[1], 1);
    return first && second;
  }

  bool read_scalar(Key const& key, YamlNode const& node, std::size_t element) {
    switch (node.kind) {
    case Kind::alias: return false; // is a fault already
    case Kind::null: return refuse(key, node, "has no value");
    case Kind::map:
    case Kind::sequence: return refuse(key, node, "is " + shown(node));
    case Kind::scalar: break;
    }
    bool const takes_text = std::holds_alternative<std::string*>(key.slot) || std::holds_alternative<Choice>(key.slot);
    std::string fault = assign(key, node.text, element);
    if (fault.empty() && node.quoted && !takes_text) fault = "is a text (it is in quotes); remove the quotes";
    if (!fault.empty()) add_fault(node, key.path, fmt::format("{} {}", shown(node), fault));
    return fault.empty();
  }

  /// Adds a fault with what the key takes. Always false.
  bool refuse(Key const& key, YamlNode const& node, std::string const& what) {
    std::string const preset = default_of(key.path);
    add_fault(node, key.path,
              fmt::format("{}; write {}{}", what, legal_values(key),
                          preset.empty() ? "" : fmt::format(", or remove the key (then it is {})", preset)));
    return false;
  }

  // ---- advice

  /// Names of the keys and sections right below a prefix.
  std::vector<std::string> names_below(std::string const& prefix) const {
    std::vector<std::string> names;
    for (auto const& key : keys_) {
      if (!key.path.starts_with(prefix)) continue;
      std::string const rest = key.path.substr(prefix.size());
      std::string name = rest.substr(0, rest.find('.'));
      if (std::ranges::count(names, name) == 0) names.push_back(std::move(name));
    }
    return names;
  }

  bool is_known(std::string_view path) const { return std::ranges::count(keys_, path, &Key::path) > 0; }

  std::string advice_about(YamlNode const& key, YamlNode const& value, std::string const& path) const {
    if (key.text == "<<") return " (a deck has no merge keys); write the keys out";
    if (value.kind == Kind::null && key.text.find(':') != std::string::npos) {
      return " (a blank is missing after the ':'?)";
    }
    // The right name in the wrong place, a wrong name in the right place, or a wrong one anywhere.
    std::vector<std::string> leaves;
    for (auto const& known : keys_) leaves.push_back(last_part(known.path));
    auto const path_of = [&](std::string const& leaf) {
      auto const at = std::ranges::find(leaves, leaf);
      return at == leaves.end() ? std::string() : keys_[static_cast<std::size_t>(at - leaves.begin())].path;
    };
    auto const siblings = names_below(path.substr(0, path.size() - key.text.size()));
    std::string meant = path_of(key.text);
    if (meant.empty()) {
      if (auto const* const foreign = find_foreign_word(key.text); foreign && is_known(foreign->key)) {
        return fmt::format(" (it is '{}' here{}{})", foreign->key, foreign->note.empty() ? "" : ": ", foreign->note);
      }
    }
    if (meant.empty()) meant = nearest_word(key.text, siblings);
    if (meant.empty()) meant = path_of(nearest_word(key.text, leaves));
    return meant.empty() ? fmt::format(" (known here: {})", joined(siblings))
                         : fmt::format(" (did you mean '{}'?)", meant);
  }

  static std::string joined(std::vector<std::string> const& names) { return fmt::format("{}", fmt::join(names, ", ")); }

  std::string default_of(std::string const& path) const {
    Config config;
    config.model = ModelConfig(config_.model.family);
    auto const keys = keys_of(config);
    return text_of(*std::ranges::find(keys, path, &Key::path));
  }

  // ---- after reading

  /// model.size gives its shape to the keys that neither the deck nor the command line sets.
  void complete_named_size() {
    for (NamedSize const& size : model_family(config_.model.family).sizes()) {
      if (size.name != config_.model.size) continue;
      for (auto const& [name, value] : size.values) {
        auto const& key = *std::ranges::find(keys_, "model." + name, &Key::path);
        Origin& origin = origins_.at(key.path);
        if (origin.kind != Origin::Kind::preset) continue;
        *std::get<std::int64_t*>(key.slot) = value;
        origin.kind = Origin::Kind::named_size;
      }
    }
  }

  void check_values() {
    if (broken_) return;
    Findings const findings = check(config_, unread_);
    auto const add_all = [this](std::vector<Finding> const& from, std::vector<Fault>& to) {
      for (auto const& finding : from) {
        Origin const origin = place_of(finding);
        from_command_line_ = origin.kind == Origin::Kind::command_line;
        to.push_back(fault_at(origin.line, origin.column, finding.keys.front(), finding.text));
      }
    };
    add_all(findings.faults, faults_);
    add_all(findings.warnings, warnings_);
  }

  /// Of the keys that a finding is about, the first that somebody wrote; else the size that named their values.
  Origin place_of(Finding const& finding) const {
    Origin found;
    for (auto const& path : finding.keys) {
      Origin const origin = origins_.at(path);
      if (origin.kind == Origin::Kind::deck || origin.kind == Origin::Kind::command_line) return origin;
      if (origin.kind == Origin::Kind::named_size) found = origins_.at("model.size");
    }
    return found;
  }

  // ---- faults

  Fault fault_at(int line, int column, std::string const& path, std::string const& text) const {
    if (from_command_line_) line = column = 0;
    std::string const place = from_command_line_ ? "command line"
                              : line > 0         ? fmt::format("{}:{}:{}", name_, line, column)
                                                 : name_;
    std::string message = fmt::format("{}: {}{}{}", place, path, path.empty() ? "" : ": ", text);
    std::ranges::replace_if(
        message, [](char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7f; }, ' ');
    return {from_command_line_, line, column, std::move(message)};
  }
  void add_fault(int line, int column, std::string const& path, std::string const& text) {
    faults_.push_back(fault_at(line, column, path, text));
  }
  void add_fault(YamlNode const& node, std::string const& path, std::string const& text) {
    add_fault(node.line, node.column, path, text);
  }

  /// By their place in the deck, those without one after, those of the command line last.
  static std::vector<std::string> sorted_messages(std::vector<Fault> faults) {
    std::ranges::stable_sort(faults, {}, [](Fault const& fault) {
      return std::tuple(fault.command_line, fault.line == 0, fault.line, fault.column);
    });
    std::vector<std::string> messages;
    for (auto& fault : faults) messages.push_back(std::move(fault.message));
    return messages;
  }

  std::string const name_;
  Config config_;
  std::vector<Key> keys_; // point into config_
  std::map<std::string, Origin> origins_;
  std::map<std::string, int> lines_; // of the keys of the deck
  std::set<std::string> unread_;     // keys whose value is not the deck's, because it has a fault
  std::vector<Fault> faults_, warnings_;
  bool from_command_line_ = false;
  bool broken_ = false; // nothing of the deck was read
};

} // namespace

Deck read_deck(std::string_view text, std::string const& name, std::vector<std::string> const& overrides) {
  return DeckReader(name).read(text, overrides);
}

StoredDeck read_stored_deck(std::string_view text, std::int64_t format_version) {
  return DeckReader(fmt::format("deck of format_version {}", format_version)).read_stored(text);
}

} // namespace kozero
