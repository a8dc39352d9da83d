#pragma once
// One key of a deck: the field that it stands for, what is legal there, and its value as text.

#include <array>
#include <cstdint>
#include <functional>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace kozero {

/// What a change of the key between a checkpoint and the run that resumes it does.
enum class Severity { harmless, changes_numerics, forbidden };
std::string_view name_of(Severity severity);

/// One of a few words.
struct Choice {
  std::vector<std::string> words;
  std::function<std::string()> get;
  std::function<void(std::string const&)> set; // one of `words`
};

struct Every; // config/config.hpp

/// The field that a key stands for. An empty optional is the word none.
using Slot = std::variant<std::int64_t*, std::optional<std::int64_t>*, double*, std::optional<double>*,
                          std::array<double, 2>*, bool*, std::string*, Every*, Choice>;

/// The legal interval of a number. Numbers are finite beside.
struct Limits {
  double low = -std::numeric_limits<double>::infinity();
  double high = std::numeric_limits<double>::infinity();
  bool without_low = false;
  bool without_high = false;

  bool contain(double value) const;
};

enum class Measure { number, bytes, seconds };

struct Key {
  std::string path; // section.key
  Slot slot;
  Limits limits;
  Severity severity;
  std::string help;
  Measure measure = Measure::number;

  std::string section() const { return path.substr(0, path.find('.')); }
};

/// "a real number above 0, or none": what the key takes, for messages and the reference page.
std::string legal_values(Key const& key);

/// The value as a deck shows it, strings without quotes.
std::string text_of(Key const& key);

/// Reads one scalar. Returns what is wrong, to be read after the value; empty when it is assigned. Only the type and
/// the unit are judged: limits are config/check's. For a pair of numbers, `text` is its element number `element`.
std::string assign(Key const& key, std::string const& text, std::size_t element = 0);

/// What is wrong with the value, to be read after the key; empty: within its limits.
std::string limits_fault(Key const& key);

} // namespace kozero
