// Values of keys as text, and text as values.
#include "config/key.hpp"

#include "config/config.hpp"
#include "config/units.hpp"
#include "core/error.hpp"

#include <algorithm>
#include <cmath>

namespace kozero {

namespace {

template <class... Functions>
struct Overloaded : Functions... {
  using Functions::operator()...;
};
template <class... Functions>
Overloaded(Functions...) -> Overloaded<Functions...>;

template <class T>
inline constexpr bool is_optional = false;
template <class T>
inline constexpr bool is_optional<std::optional<T>> = true;

std::string joined(std::vector<std::string> const& words) {
  std::string text;
  for (auto const& word : words) text += (text.empty() ? "" : ", ") + word;
  return text;
}

std::string print(std::int64_t value, Measure measure) {
  return measure == Measure::bytes ? print_bytes(value) : fmt::format("{}", value);
}
std::string print(double value, Measure measure) {
  return measure == Measure::seconds ? print_seconds(value) : print_real(value);
}

void parse(std::string const& text, Measure measure, Parsed<std::int64_t>& parsed) {
  parsed = measure == Measure::bytes ? parse_bytes(text) : parse_integer(text);
}
void parse(std::string const& text, Measure measure, Parsed<double>& parsed) {
  parsed = measure == Measure::seconds ? parse_seconds(text) : parse_real(text);
}

template <class T>
std::string assign_number(T& field, std::string const& text, Key const& key) {
  Parsed<T> parsed;
  parse(text, key.measure, parsed);
  if (parsed.value) field = *parsed.value;
  // A fault of the general kind ("is not a number") comes without advice: what to do depends on the key.
  bool const wants_advice = !parsed.fault.empty() && parsed.fault.find(';') == std::string::npos;
  return wants_advice ? parsed.fault + "; write " + legal_values(key) : parsed.fault;
}

/// A whole number of updates, or a time. What is neither is told as a number would be.
std::string assign_every(Every& field, std::string const& text, Key const& key) {
  if (Parsed<double> const time = parse_seconds(text); time.value) {
    field = Every();
    field.seconds = time.value;
    return {};
  }
  Every by_number;
  std::string fault = assign_number(by_number.updates, text, key);
  if (fault.empty()) field = by_number;
  return fault;
}

std::string assign_string(std::string& field, std::string const& text) {
  if (text.empty()) return "is empty; write a text, or leave the key out";
  if (text.front() == ' ' || text.back() == ' ') return "begins or ends with a blank; remove it";
  if (std::ranges::any_of(text, [](char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7f; })) {
    return "has a control character in it (a line break or a tab, say); remove it";
  }
  field = text;
  return {};
}

std::string assign_choice(Choice const& choice, std::string const& text) {
  if (std::ranges::count(choice.words, text) != 0) {
    choice.set(text);
    return {};
  }
  return fmt::format("is not one of the words that may stand here; write one of {}", joined(choice.words));
}

std::string words_for(Limits const& limits) {
  bool const low = std::isfinite(limits.low);
  bool const high = std::isfinite(limits.high);
  if (low && high && !limits.without_low && !limits.without_high) {
    return fmt::format(" from {} to {}", limits.low, limits.high);
  }
  std::string text;
  if (low) text += fmt::format(" {} {}", limits.without_low ? "above" : "of at least", limits.low);
  if (high) {
    text += fmt::format("{} {} {}", low ? " and" : "", limits.without_high ? "below" : "of at most", limits.high);
  }
  return text;
}

} // namespace

std::string_view name_of(Severity severity) {
  switch (severity) {
  case Severity::harmless: return "harmless";
  case Severity::changes_numerics: return "changes numerics";
  case Severity::forbidden: return "forbidden";
  }
  return "?";
}

bool Limits::contain(double value) const {
  bool const above = without_low ? value > low : value >= low;
  bool const below = without_high ? value < high : value <= high;
  return std::isfinite(value) && above && below;
}

std::string legal_values(Key const& key) {
  std::string const limits = words_for(key.limits);
  std::string number = "a number" + limits;
  std::string whole_number = "a whole number" + limits;
  if (key.measure == Measure::seconds) number = fmt::format("a time{} such as 90s ({})", limits, time_units());
  if (key.measure == Measure::bytes) whole_number = fmt::format("a size{} such as 512MiB ({})", limits, byte_units());
  return std::visit(
      Overloaded{
          [&](std::int64_t*) { return whole_number; },
          [&](std::optional<std::int64_t>*) { return whole_number + ", or none"; }, [&](double*) { return number; },
          [&](std::optional<double>*) { return number + ", or none"; },
          [&](std::array<double, 2>*) { return "two numbers [a, b], each" + limits; },
          [](bool*) { return std::string("true or false"); }, [](std::string*) { return std::string("a text"); },
          [&](Every*) { return fmt::format("{}, or a time above 0 such as 30min ({})", whole_number, time_units()); },
          [](Choice const& choice) { return (choice.words.size() > 1 ? "one of " : "") + joined(choice.words); }},
      key.slot);
}

std::string text_of(Key const& key) {
  return std::visit(Overloaded{[](std::array<double, 2>* field) {
                                 return fmt::format("[{}, {}]", print_real((*field)[0]), print_real((*field)[1]));
                               },
                               [](bool* field) { return std::string(*field ? "true" : "false"); },
                               [](std::string* field) { return *field; },
                               [](Every* field) {
                                 return field->seconds ? print_seconds(*field->seconds)
                                                       : print(field->updates, Measure::number);
                               },
                               [](Choice const& choice) { return choice.get(); },
                               [&]<class T>(T* field) {
                                 if constexpr (is_optional<T>)
                                   return *field ? print(**field, key.measure) : std::string("none");
                                 else
                                   return print(*field, key.measure);
                               }},
                    key.slot);
}

std::string assign(Key const& key, std::string const& text, std::size_t element) {
  return std::visit(
      Overloaded{[&](std::array<double, 2>* field) { return assign_number(field->at(element), text, key); },
                 [&](bool* field) {
                   Parsed<bool> const parsed = parse_bool(text);
                   if (parsed.value) *field = *parsed.value;
                   return parsed.fault;
                 },
                 [&](std::string* field) { return assign_string(*field, text); },
                 [&](Every* field) { return assign_every(*field, text, key); },
                 [&](Choice const& choice) { return assign_choice(choice, text); },
                 [&]<class T>(T* field) {
                   if constexpr (is_optional<T>) {
                     field->reset();
                     return text == "none" ? std::string() : assign_number(field->emplace(), text, key);
                   } else {
                     return assign_number(*field, text, key);
                   }
                 }},
      key.slot);
}

std::string limits_fault(Key const& key) {
  auto const contains = [&](auto value) { return key.limits.contain(static_cast<double>(value)); };
  bool const legal = std::visit(
      Overloaded{[&](std::array<double, 2>* field) { return contains((*field)[0]) && contains((*field)[1]); },
                 [](bool*) { return true; }, [](std::string*) { return true; }, [](Choice const&) { return true; },
                 [&](Every* field) { return field->seconds ? *field->seconds > 0 : contains(field->updates); },
                 [&]<class T>(T* field) {
                   if constexpr (is_optional<T>)
                     return !*field || contains(**field);
                   else
                     return contains(*field);
                 }},
      key.slot);
  return legal ? std::string() : fmt::format("{} is out of range; write {}", text_of(key), legal_values(key));
}

} // namespace kozero
