#pragma once
// YAML text as a tree that remembers where everything stands. The one place that knows yaml-cpp.

#include <string>
#include <string_view>
#include <vector>

namespace kozero {

struct YamlNode {
  enum class Kind { null, scalar, sequence, map, alias }; // an alias is a fault already
  struct Entry;

  Kind kind = Kind::null;
  int line = 1; // from 1; so is the column, in bytes
  int column = 1;
  std::string text;            // of a scalar
  bool quoted = false;         // a scalar in quotes (or a | or > block): a string, whatever it looks like
  std::vector<YamlNode> items; // of a sequence
  std::vector<Entry> entries;  // of a map, in the text's order, duplicates too
};

struct YamlNode::Entry {
  YamlNode key, value;
};

struct YamlFault {
  int line = 1;
  int column = 1;
  std::string text;
};

struct YamlTree {
  YamlNode root;
  bool empty = true;             // nothing but blanks and comments
  std::vector<YamlFault> faults; // in the text's order
  bool broken = false;           // the root is not to be looked at
};

/// One document. Faults are what is not YAML, and what is YAML but no part of a deck: anchors, aliases, tags, a second
/// document, control characters, text that is not UTF-8. Throws nothing about the text.
YamlTree read_yaml(std::string_view text);

} // namespace kozero
