#include "config/units.hpp"

#include "core/error.hpp"

#include <array>
#include <charconv>
#include <cmath>
#include <limits>
#include <span>

namespace kozero {

namespace {

struct Unit {
  std::string_view name;
  std::int64_t factor;
};

constexpr std::array counts{Unit{"k", 1000}, Unit{"M", 1000'000}, Unit{"G", 1000'000'000}};
constexpr std::array bytes{Unit{"B", 1},
                           Unit{"kB", 1000},
                           Unit{"MB", 1000'000},
                           Unit{"GB", 1000'000'000},
                           Unit{"TB", 1000'000'000'000},
                           Unit{"KiB", std::int64_t{1} << 10},
                           Unit{"MiB", std::int64_t{1} << 20},
                           Unit{"GiB", std::int64_t{1} << 30},
                           Unit{"TiB", std::int64_t{1} << 40}};
// In milliseconds.
constexpr std::array times{Unit{"ms", 1}, Unit{"s", 1000}, Unit{"min", 60'000}, Unit{"h", 3600'000},
                           Unit{"d", 86'400'000}};

std::string names_of(std::span<Unit const> units) {
  std::string text;
  for (auto const& unit : units) text += (text.empty() ? "" : ", ") + std::string(unit.name);
  return text;
}

bool is_digit(char c) { return c >= '0' && c <= '9'; }

/// A number taken apart: sign, digits '.' fraction 'e' exponent, and what follows.
struct Literal {
  bool negative = false;
  std::string_view digits, fraction, exponent; // exponent with its sign, without the 'e'
  bool has_point = false;
  std::string_view number; // all of the above, without a leading '+'
  std::string_view unit;

  bool is_number() const { return !digits.empty() || !fraction.empty(); }
};

Literal take_apart(std::string_view text) {
  Literal literal;
  std::size_t at = 0;
  auto const digits = [&] {
    std::size_t const begin = at;
    while (at < text.size() && is_digit(text[at])) ++at;
    return text.substr(begin, at - begin);
  };
  if (at < text.size() && (text[at] == '-' || text[at] == '+')) literal.negative = text[at++] == '-';
  std::size_t const begin = literal.negative ? 0 : at;
  literal.digits = digits();
  if (at < text.size() && text[at] == '.') {
    literal.has_point = true;
    ++at;
    literal.fraction = digits();
  }
  if (literal.is_number() && at < text.size() && (text[at] == 'e' || text[at] == 'E')) {
    std::size_t const before = at++;
    std::size_t const sign = at;
    if (at < text.size() && (text[at] == '-' || text[at] == '+')) ++at;
    if (digits().empty())
      at = before;
    else
      literal.exponent = text.substr(sign, at - sign);
  }
  literal.number = text.substr(begin, at - begin);
  literal.unit = text.substr(at);
  return literal;
}

/// What is wrong with any kind of number, whatever it is for; empty: nothing.
std::string general_fault(std::string_view text, std::string_view kind) {
  if (text.empty()) return fmt::format("is empty (not {})", kind);
  auto const blank = [](char c) { return c == ' ' || c == '\t' || c == '\n' || c == '\r'; };
  if (blank(text.front()) || blank(text.back())) return "has blanks around the number; remove them";
  std::string lower;
  for (char const c : text) lower += c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  std::string_view bare = lower;
  if (bare.front() == '-' || bare.front() == '+') bare.remove_prefix(1);
  if (!bare.empty() && bare.front() == '.') bare.remove_prefix(1);
  if (bare == "nan" || bare == "inf" || bare == "infinity") return "is not finite";
  if (!take_apart(text).is_number()) return fmt::format("is not {}", kind);
  return {};
}

std::optional<double> to_double(std::string_view number) {
  double value = 0;
  auto const [end, error] = std::from_chars(number.data(), number.data() + number.size(), value);
  if (error != std::errc{} || end != number.data() + number.size()) return std::nullopt;
  return value;
}

/// digits.fraction × factor, exactly, or what is wrong with it.
Parsed<std::int64_t> whole(Literal const& literal, std::int64_t factor, std::string_view what) {
  __extension__ using Wide = unsigned __int128;
  std::string_view fraction = literal.fraction;
  while (!fraction.empty() && fraction.back() == '0') fraction.remove_suffix(1);
  if (fraction.size() > 18) return {{}, fmt::format("is not a whole number{}", what)};
  Wide value = 0; // in units of 10^-fraction.size()
  Wide one = 1;
  Wide constexpr limit = std::numeric_limits<std::int64_t>::max();
  for (char const digit : literal.digits) {
    value = value * 10 + static_cast<Wide>(digit - '0');
    if (value > limit) break; // reported below; the rest would only make it larger
  }
  if (value <= limit) {
    for (char const digit : fraction) {
      value = value * 10 + static_cast<Wide>(digit - '0');
      one *= 10;
    }
  }
  if (value / one > limit / static_cast<Wide>(factor)) {
    return {{}, "is too large (64 bits do not hold it)"};
  }
  value *= static_cast<Wide>(factor);
  if (value % one != 0) return {{}, fmt::format("is not a whole number{}", what)};
  auto const magnitude = static_cast<std::int64_t>(value / one);
  return {literal.negative ? -magnitude : magnitude, {}};
}

Unit const* find(std::span<Unit const> units, std::string_view name) {
  for (auto const& unit : units) {
    if (unit.name == name) return &unit;
  }
  return nullptr;
}

/// The unit of a value that must have one, or what is wrong with it.
Unit const* required_unit(Literal const& literal, std::span<Unit const> units, std::string& fault) {
  Unit const* const unit = find(units, literal.unit);
  if (unit == nullptr) {
    fault = literal.unit.empty() ? "has no unit" : fmt::format("has the unknown unit '{}'", literal.unit);
  }
  return unit;
}

} // namespace

Parsed<std::int64_t> parse_integer(std::string_view text) {
  if (std::string fault = general_fault(text, "a whole number"); !fault.empty()) return {{}, std::move(fault)};
  Literal const literal = take_apart(text);
  if (!literal.exponent.empty()) {
    std::string advice = "write all its digits, or use k, M or G";
    std::optional<double> const value = to_double(literal.number);
    if (literal.unit.empty() && value && std::abs(*value) < 1e15 && *value == std::floor(*value)) {
      advice = fmt::format("write {}", static_cast<std::int64_t>(*value));
    }
    return {{}, fmt::format("is a real number where a whole one belongs; {}", advice)};
  }
  if (literal.digits.size() > 1 && literal.digits.front() == '0') {
    return {{}, "begins with 0 (octal to some readers); remove the zeros in front"};
  }
  if (literal.unit.empty()) {
    if (literal.has_point) return {{}, "is a real number where a whole one belongs; remove the point"};
    return whole(literal, 1, "");
  }
  Unit const* const unit = find(counts, literal.unit);
  if (unit == nullptr) {
    return {{},
            fmt::format("is not a whole number ('{}' is no unit of it: k, M and G are, for 10^3, 10^6, 10^9)",
                        literal.unit)};
  }
  return whole(literal, unit->factor, "");
}

Parsed<double> parse_real(std::string_view text) {
  if (std::string fault = general_fault(text, "a number"); !fault.empty()) return {{}, std::move(fault)};
  Literal const literal = take_apart(text);
  if (!literal.unit.empty()) return {{}, fmt::format("is not a number ('{}' follows it)", literal.unit)};
  std::optional<double> const value = to_double(literal.number);
  if (!value) {
    return {{}, "is out of the range of 64-bit numbers (about 1e-308 to 1e308)"};
  }
  return {*value, {}};
}

Parsed<std::int64_t> parse_bytes(std::string_view text) {
  if (std::string fault = general_fault(text, "a size"); !fault.empty()) return {{}, std::move(fault)};
  Literal const literal = take_apart(text);
  std::string fault;
  Unit const* const unit = required_unit(literal, bytes, fault);
  if (unit == nullptr) return {{}, fault};
  if (!literal.exponent.empty()) return {{}, "has an exponent; write its digits and a unit, for example 512MiB"};
  return whole(literal, unit->factor, " of bytes");
}

Parsed<double> parse_seconds(std::string_view text) {
  if (std::string fault = general_fault(text, "a time"); !fault.empty()) return {{}, std::move(fault)};
  Literal const literal = take_apart(text);
  std::string fault;
  Unit const* const unit = required_unit(literal, times, fault);
  if (unit == nullptr) return {{}, fault};
  std::optional<double> const value = to_double(literal.number);
  // Seconds are whole multiples of most units, so that 0.1s stays the double nearest to 0.1.
  double const seconds = !value                ? std::numeric_limits<double>::infinity()
                         : unit->factor < 1000 ? *value / (1000.0 / static_cast<double>(unit->factor))
                                               : *value * (static_cast<double>(unit->factor) / 1000.0);
  if (!std::isfinite(seconds)) return {{}, "is out of the range of 64-bit numbers"};
  return {seconds, {}};
}

Parsed<bool> parse_bool(std::string_view text) {
  if (text == "true") return {true, {}};
  if (text == "false") return {false, {}};
  return {{}, "is not a boolean; write true or false"};
}

std::string print_bytes(std::int64_t value) {
  Unit best{"B", 1};
  for (auto const& unit : bytes) {
    if (value != 0 && value % unit.factor == 0 && unit.factor > best.factor) best = unit;
  }
  return fmt::format("{}{}", value / best.factor, best.name);
}

std::string print_seconds(double seconds) {
  Unit best{"s", 1000};
  for (auto const& unit : times) {
    double const size = static_cast<double>(unit.factor) / 1000;
    bool const exact = size > 1 && std::abs(seconds) < 1e15 && std::fmod(seconds, size) == 0;
    if (exact && seconds != 0) best = unit;
  }
  return print_real(seconds / (static_cast<double>(best.factor) / 1000)) + std::string(best.name);
}

std::string print_real(double value) { return fmt::format("{}", value); }

std::string byte_units() { return names_of(bytes); }
std::string time_units() { return names_of(times); }

} // namespace kozero
