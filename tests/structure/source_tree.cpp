#include "structure/source_tree.hpp"

#include <algorithm>
#include <cctype>
#include <fstream>
#include <regex>
#include <sstream>

namespace kozero::structure {

namespace fs = std::filesystem;

std::string read_text(fs::path const& path) {
  std::ostringstream text;
  text << std::ifstream(path, std::ios::binary).rdbuf();
  return text.str();
}

std::vector<SourceFile> read_tree(fs::path const& root, std::vector<std::string> const& folders) {
  std::vector<SourceFile> files;
  for (auto const& folder : folders) {
    for (auto const& item : fs::recursive_directory_iterator(root / folder)) {
      fs::path const& path = item.path();
      if (path.extension() != ".hpp" && path.extension() != ".cpp") continue;
      files.push_back({fs::relative(path, root).generic_string(), read_text(path)});
    }
  }
  std::ranges::sort(files, {}, &SourceFile::path);
  return files;
}

std::string part_of(std::string_view path) {
  if (path.starts_with("src/")) path.remove_prefix(4);
  std::size_t const slash = path.find('/');
  return slash == std::string_view::npos ? "" : std::string(path.substr(0, slash));
}

namespace {

/// Walks through C++ text and keeps what the caller wants of it.
class Lexer {
public:
  enum class Quotes { keep, blank };
  Lexer(std::string_view text, Quotes quotes) : text_(text), quotes_(quotes) {}

  std::string code() {
    while (at_ < text_.size()) {
      if (starts("//")) {
        blank_until("\n");
      } else if (starts("/*")) {
        blank_until("*/");
      } else if (starts("R\"") && !after_word()) {
        take_raw_string();
      } else if (text_[at_] == '"' || (text_[at_] == '\'' && !after_word())) { // no quote: 1'000
        take_literal(text_[at_]);
      } else {
        out_ += text_[at_++];
      }
    }
    return std::move(out_);
  }

private:
  bool starts(std::string_view what) const { return text_.substr(at_).starts_with(what); }
  bool after_word() const {
    return at_ > 0 && (std::isalnum(static_cast<unsigned char>(text_[at_ - 1])) || text_[at_ - 1] == '_');
  }
  void blank(std::size_t end) {
    for (; at_ < std::min(end, text_.size()); ++at_) out_ += text_[at_] == '\n' ? '\n' : ' ';
  }
  /// Up to the end mark and, but for the end of a line, over it.
  void blank_until(std::string_view mark) {
    std::size_t const found = text_.find(mark, at_ + 2);
    blank(found == std::string_view::npos ? found : mark == "\n" ? found : found + mark.size());
  }
  void take_raw_string() {
    std::size_t const open = text_.find('(', at_);
    std::string mark = ")";
    mark += text_.substr(at_ + 2, open - at_ - 2);
    mark += '"';
    std::size_t const found = text_.find(mark, open);
    take(found == std::string_view::npos ? found : found + mark.size());
  }
  void take_literal(char quote) {
    std::size_t end = at_ + 1;
    while (end < text_.size() && text_[end] != quote && text_[end] != '\n') end += text_[end] == '\\' ? 2 : 1;
    take(end + 1);
  }
  void take(std::size_t end) {
    if (quotes_ == Quotes::blank) return blank(end);
    for (; at_ < std::min(end, text_.size()); ++at_) out_ += text_[at_];
  }

  std::string_view text_;
  Quotes quotes_;
  std::size_t at_ = 0;
  std::string out_;
};

} // namespace

std::string code_of(std::string_view text) { return Lexer(text, Lexer::Quotes::blank).code(); }

std::vector<Include> includes_of(std::string_view text) {
  static std::regex const form(R"(^\s*#\s*include\s*([<"])([^>"]+)[>"].*)");
  std::istringstream lines(Lexer(text, Lexer::Quotes::keep).code());
  std::vector<Include> includes;
  std::string line;
  std::smatch match;
  for (int number = 1; std::getline(lines, line); ++number) {
    if (std::regex_match(line, match, form)) includes.push_back({number, match[2], match[1] == "\""});
  }
  return includes;
}

} // namespace kozero::structure
