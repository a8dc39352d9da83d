#include "bench/report.hpp"

#include "core/error.hpp"
#include "core/format.hpp"
#include "io/json.hpp"

#include <algorithm>
#include <type_traits>

namespace kozero {

namespace {

/// The first column stands left, the others right; two blanks between them.
std::string text_of(BenchTable const& table) {
  std::vector<std::size_t> widths;
  for (std::size_t c = 0; c < table.columns.size(); ++c) {
    widths.push_back(table.columns[c].title.size());
    for (auto const& row : table.rows) widths[c] = std::max(widths[c], row.at(c).text.size());
  }
  auto const line = [&](auto const& text_in) {
    std::string text = fmt::format("{:<{}}", text_in(0), widths[0]);
    for (std::size_t c = 1; c < widths.size(); ++c) text += fmt::format("  {:>{}}", text_in(c), widths[c]);
    return text + '\n';
  };
  std::string text = line([&](std::size_t c) -> std::string const& { return table.columns[c].title; });
  for (auto const& row : table.rows) text += line([&](std::size_t c) -> std::string const& { return row[c].text; });
  return text;
}

Json json_of(BenchValue const& value) {
  return std::visit(
      []<class T>(T const& content) {
        if constexpr (std::is_same_v<T, std::monostate>) {
          return Json();
        } else {
          return Json(content);
        }
      },
      value.value);
}

Json json_of(BenchTable const& table) {
  Json rows = Json::array();
  for (auto const& row : table.rows) {
    Json& object = rows.emplace_back(Json::object());
    for (std::size_t c = 0; c < table.columns.size(); ++c) object[table.columns[c].key] = json_of(row.at(c));
  }
  return rows;
}

} // namespace

BenchValue bench_words(std::string text) { return {.value = text, .text = text}; }
BenchValue bench_count(std::int64_t count) { return {.value = count, .text = fmt::format("{}", count)}; }
BenchValue bench_number(double number, int digits) {
  return {.value = number, .text = fmt::format("{:.{}f}", number, digits)};
}
BenchValue bench_rate(double per_second, char const* unit) {
  return {.value = per_second, .text = format_rate(per_second, unit)};
}

std::string text_of(BenchReport const& report) {
  std::string text = report.title + "\n\n";
  std::size_t width = 0;
  for (auto const& fact : report.facts) width = std::max(width, fact.title.size());
  for (auto const& fact : report.facts) text += fmt::format("{:<{}}  {}\n", fact.title, width, fact.value.text);
  for (auto const& table : report.tables) text += '\n' + text_of(table);
  text += '\n';
  for (auto const& note : report.notes) text += note + '\n';
  return text;
}

std::string json_of(BenchReport const& report) {
  Json object = {{"benchmark", report.benchmark}};
  for (auto const& fact : report.facts) object[fact.key] = json_of(fact.value);
  for (auto const& table : report.tables) object[table.key] = json_of(table);
  object["notes"] = report.notes;
  object["warnings"] = report.warnings;
  return object.dump(2) + '\n';
}

} // namespace kozero
