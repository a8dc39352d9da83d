#pragma once
// Numbers as a deck writes them: strict, with units, and printed so that they read back the same.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace kozero {

/// A value, or what is wrong with its text, to be read after the text: "is not a whole number (…); write …".
template <class T>
struct Parsed {
  std::optional<T> value;
  std::string fault;
};

/// 1000, -5, 50M, 1.5k: a whole number, with k, M, G for 10^3, 10^6, 10^9. Not 1e3, 1.0, 010, 0x10, 1_000.
Parsed<std::int64_t> parse_integer(std::string_view text);
/// 1, 0.5, 1e-4: finite, and not rounded to 0 or infinity. No unit.
Parsed<double> parse_real(std::string_view text);
/// 512MiB, 1.5GB: a whole number of bytes; the unit is never left out.
Parsed<std::int64_t> parse_bytes(std::string_view text);
/// 90s, 2h, 250ms, 1.5d: seconds; the unit is never left out.
Parsed<double> parse_seconds(std::string_view text);
/// true, false: not the yes, no, on, off of YAML 1.1.
Parsed<bool> parse_bool(std::string_view text);

/// In the largest unit that leaves a whole number.
std::string print_bytes(std::int64_t bytes);
std::string print_seconds(double seconds);
/// The shortest text that reads back as the same number.
std::string print_real(double value);

/// "B, kB, …" and "ms, s, …", for messages.
std::string byte_units();
std::string time_units();

} // namespace kozero
