#pragma once
#include <cstdint>
#include <string>
#include <utility>
#include <variant>
#include <vector>

namespace kozero {

/// A figure, as JSON has it and as people read it. None: null, "-".
struct BenchValue {
  std::variant<std::monostate, std::string, std::int64_t, double> value = {};
  std::string text = "-";
};

BenchValue bench_words(std::string text);
BenchValue bench_count(std::int64_t count);
/// With so many digits behind the point.
BenchValue bench_number(double number, int digits);
/// As format_rate shows it; in JSON a second's, without prefixes.
BenchValue bench_rate(double per_second, char const* unit);

struct BenchColumn {
  std::string key;   // of JSON
  std::string title; // of the table
};

struct BenchTable {
  std::string key; // of JSON, an array of objects
  std::vector<BenchColumn> columns;
  std::vector<std::vector<BenchValue>> rows; // a value for each column
};

/// A setting or a figure that there is one of.
struct BenchFact {
  std::string key;
  std::string title;
  BenchValue value;
};

/// What a benchmark has to say: one content, as text and as JSON.
struct BenchReport {
  std::string benchmark;
  std::string title;
  std::vector<BenchFact> facts;
  std::vector<BenchTable> tables;
  std::vector<std::string> notes;    // what the figures are, a line or more each
  std::vector<std::string> warnings; // what makes them worth less, a line each; not part of the text
};

std::string text_of(BenchReport const& report);
/// One object: benchmark, the facts, an array for each table, notes, warnings.
std::string json_of(BenchReport const& report);

} // namespace kozero
