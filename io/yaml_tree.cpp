#include "io/yaml_tree.hpp"

#include "core/error.hpp"

#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/exceptions.h>
#include <yaml-cpp/parser.h>

#include <algorithm>
#include <optional>
#include <sstream>

namespace kozero {

namespace {

/// Takes the parser's events; keeps its first document.
class TreeBuilder : public YAML::EventHandler {
public:
  explicit TreeBuilder(YamlTree& tree) : tree_(tree) {}

  bool second_document() const { return documents_ > 1; }

  void OnDocumentStart(YAML::Mark const& mark) override {
    if (++documents_ == 2) fault(mark, "a second document begins here (a deck is one); remove it");
  }
  void OnDocumentEnd() override {}

  void OnNull(YAML::Mark const& mark, YAML::anchor_t anchor) override { add(node(YamlNode::Kind::null, mark, anchor)); }
  void OnAlias(YAML::Mark const& mark, YAML::anchor_t) override {
    fault(mark, "an alias (*) is no part of a deck (every key says its own value); write the value out");
    add(node(YamlNode::Kind::alias, mark, 0));
  }
  void OnScalar(YAML::Mark const& mark, std::string const& tag, YAML::anchor_t anchor,
                std::string const& value) override {
    YamlNode scalar = node(YamlNode::Kind::scalar, mark, anchor, tag);
    scalar.text = value;
    scalar.quoted = tag == "!";
    add(std::move(scalar));
  }
  void OnSequenceStart(YAML::Mark const& mark, std::string const& tag, YAML::anchor_t anchor,
                       YAML::EmitterStyle::value) override {
    open_.push_back(node(YamlNode::Kind::sequence, mark, anchor, tag));
  }
  void OnSequenceEnd() override { close(); }
  void OnMapStart(YAML::Mark const& mark, std::string const& tag, YAML::anchor_t anchor,
                  YAML::EmitterStyle::value) override {
    open_.push_back(node(YamlNode::Kind::map, mark, anchor, tag));
  }
  void OnMapEnd() override {
    // Keys and values came one by one.
    YamlNode& map = open_.back();
    for (std::size_t i = 0; i + 1 < map.items.size(); i += 2) {
      YamlNode& value = map.items[i + 1];
      // The parser places a value that is not there after the blanks and lines that follow.
      if (value.kind == YamlNode::Kind::null) {
        value.line = map.items[i].line;
        value.column = map.items[i].column;
      }
      map.entries.push_back({std::move(map.items[i]), std::move(value)});
    }
    map.items.clear();
    close();
  }

private:
  void fault(YAML::Mark const& mark, std::string text) {
    tree_.faults.push_back({mark.line + 1, mark.column + 1, std::move(text)});
  }

  YamlNode node(YamlNode::Kind kind, YAML::Mark const& mark, YAML::anchor_t anchor, std::string const& tag = "?") {
    if (anchor != 0) {
      fault(mark, "an anchor (&) is no part of a deck (every key says its own value); remove it");
    }
    if (tag != "?" && tag != "!" && !tag.empty()) {
      fault(mark, "a tag (!) is no part of a deck (a key's type is known); remove it");
    }
    YamlNode result;
    result.kind = kind;
    result.line = mark.line + 1;
    result.column = mark.column + 1;
    return result;
  }

  void add(YamlNode child) {
    if (documents_ > 1) return;
    if (!open_.empty()) {
      open_.back().items.push_back(std::move(child));
    } else {
      tree_.empty = false;
      tree_.root = std::move(child);
    }
  }

  void close() {
    YamlNode done = std::move(open_.back());
    open_.pop_back();
    add(std::move(done));
  }

  YamlTree& tree_;
  std::vector<YamlNode> open_; // sequences and maps around the next event
  int documents_ = 0;
};

/// Bytes of the UTF-8 character at the beginning of `text`; 0: there is none. RFC 3629.
std::size_t utf8_length(std::string_view text) {
  auto const byte = [&](std::size_t i) { return i < text.size() ? static_cast<unsigned char>(text[i]) : 0u; };
  unsigned const first = byte(0);
  if (first < 0x80) return 1;
  std::size_t const length = first < 0xc2 ? 0 : first < 0xe0 ? 2 : first < 0xf0 ? 3 : first < 0xf5 ? 4 : 0;
  for (std::size_t i = 1; i < length; ++i) {
    if ((byte(i) & 0xc0u) != 0x80u) return 0;
  }
  bool const overlong = (first == 0xe0 && byte(1) < 0xa0) || (first == 0xf0 && byte(1) < 0x90);
  bool const surrogate = first == 0xed && byte(1) >= 0xa0;
  bool const too_large = first == 0xf4 && byte(1) >= 0x90;
  return overlong || surrogate || too_large ? 0 : length;
}

/// What the parser would take amiss, or end at without a word.
std::optional<YamlFault> character_fault(std::string_view text) {
  YamlFault at;
  bool indentation = true;
  for (std::size_t i = 0; i < text.size();) {
    auto const c = static_cast<unsigned char>(text[i]);
    std::size_t const length = utf8_length(text.substr(i));
    if (length == 0) at.text = "this is not UTF-8 (is it the deck?); save it as UTF-8 text";
    if ((c < 0x20 && c != '\t' && c != '\n' && c != '\r') || c == 0x7f) {
      at.text = fmt::format("the control character 0x{:02x} is no text (is it the deck?); remove it", c);
    }
    if (c == '\t' && indentation) at.text = "a tab indents this line (YAML allows blanks alone there); use blanks";
    if (!at.text.empty()) return at;
    indentation = c == '\n' || (indentation && c == ' ');
    at.line += c == '\n' ? 1 : 0;
    at.column = c == '\n' ? 1 : at.column + static_cast<int>(length);
    i += length;
  }
  return std::nullopt;
}

} // namespace

YamlTree read_yaml(std::string_view text) {
  YamlTree tree;
  tree.broken = true;
  if (auto const fault = character_fault(text)) {
    tree.faults.push_back(*fault);
    return tree;
  }
  TreeBuilder builder(tree);
  std::istringstream stream{std::string(text)};
  try {
    YAML::Parser parser(stream);
    while (!builder.second_document() && parser.HandleNextDocument(builder)) {
    }
    tree.broken = false;
  } catch (YAML::Exception const& error) {
    tree.faults.push_back(
        {std::max(1, error.mark.line + 1), std::max(1, error.mark.column + 1),
         fmt::format("this is not YAML ({}); look for wrong indentation, or a ':', '#' or quote out of "
                     "place, here or in the line above",
                     error.msg)});
  }
  return tree;
}

} // namespace kozero
