#include "structure/rules.hpp"

#include <algorithm>
#include <map>
#include <regex>
#include <set>
#include <sstream>

namespace kozero::structure {

namespace {

/// the arrows of doc/architecture.md: what each part may include.
std::map<std::string, std::set<std::string>> const& arrows() {
  static std::map<std::string, std::set<std::string>> const map = {
      {"core", {"core"}},
      {"layout", {"layout", "core"}},
      {"config", {"config", "core"}},
      {"comm", {"comm", "layout", "core"}},
      {"kernels", {"kernels", "core"}},
      {"optim", {"optim", "layout", "config", "core"}},
      {"model", {"model", "kernels", "layout", "config", "core"}},
      {"zero", {"zero", "comm", "optim", "kernels", "layout", "config", "core"}},
      {"io", {"io", "optim", "comm", "layout", "config", "core"}},
      {"data", {"data", "model", "io", "kernels", "comm", "layout", "config", "core"}},
      {"plan", {"plan", "train", "data", "model", "zero", "io", "kernels", "optim", "comm", "layout", "config", "core"}},
      {"train", {"train", "data", "model", "zero", "io", "kernels", "optim", "comm", "layout", "config", "core"}},
      {"verify", {"verify", "train", "data", "model", "zero", "io", "kernels", "optim", "comm", "layout", "config", "core"}},
      {"infer", {"infer", "model", "io", "kernels", "comm", "layout", "config", "core"}},
      {"app", {"app", "train", "plan", "verify", "infer", "data", "model", "zero", "io", "kernels", "optim", "comm", "layout", "config", "core"}}};
  return map;
}

/// Something that only some files may use: a header that they include, or a word in their code.
struct Home {
  char const* what;
  char const* includes; // regular expression of the whole name; empty: none
  char const* code;     // regular expression of a part of a line; empty: none
  char const* files;    // regular expression of their paths
};

constexpr Home homes[] = {
    {"MPI", R"(mpi\.h)", R"(\bMPI_\w+\s*\()", R"(src/comm/\w+\.cpp|src/core/runtime\.cpp)"},
    {"NCCL", R"(nccl\.h)", "", R"(src/comm/\w+\.cpp)"},
    {"HDF5", R"(hdf5.*\.h|H5\w+\.h)", R"(\bH5[A-Z]\w*\s*\()", R"(io/.*)"},
    {"yaml-cpp", R"(yaml-cpp/.*)", R"(\bYAML::)", R"(io/\w+\.cpp)"},
    {"nlohmann-json", R"(nlohmann/.*)", R"(\bnlohmann::)", R"(io/json\.hpp)"},
    {"opening files", R"(fstream|sys/mman\.h|fcntl\.h)",
     R"(\b(fopen|fdopen|freopen|openat|creat|mkstemp|mmap|[io]?fstream)\b|(^|[^\w.>])open\s*\()", R"(io/.*)"},
    {"oneDNN", R"((oneapi/dnnl/)?dnnl.*)", R"(\bdnnl(::|_\w))", R"(kernels/.*)"},
    {"cuBLAS", R"(cublas.*)", R"(\bcublas\w*\s*\()", R"(kernels/.*)"},
    {"Kokkos Kernels", R"(Kokkos(Blas|Batched|Kernels).*)", R"(\bKokkos(Blas|Batched)::)", R"(kernels/.*)"},
    {"Kokkos' backend macros", "", R"(\bKOKKOS_ENABLE_)", R"(src/core/.*)"},
    {"the stage number", "", R"((\.|->)\s*stage\b)", R"(src/zero/plan\.cpp|src/config/.*|src/plan/start_table\.cpp)"},
    {"CLI11", R"(CLI/.*)", R"(\bCLI::)", R"(app/.*)"},
    {"hwloc", R"(hwloc.*)", R"(\bhwloc_)", R"(src/comm/survey\.cpp)"},
    {"xxHash", R"(xxh.*\.h)", R"(\bXXH)", R"(.*\.cpp)"},
};

std::string place(SourceFile const& file, int line) { return file.path + ':' + std::to_string(line) + ": "; }

void check_arrows(SourceFile const& file, Include const& include, std::vector<std::string>& found) {
  std::string const from = part_of(file.path);
  std::string const to = part_of(include.name);
  if (!arrows().contains(from)) {
    found.push_back(place(file, include.line) + "its folder has no place among the arrows of doc/architecture.md");
  } else if (arrows().contains(to)) {
    if (!arrows().at(from).contains(to)) {
      found.push_back(place(file, include.line) + from + " includes " + include.name +
                      ", against the arrows of doc/architecture.md");
    }
  } else if (include.quoted) {
    found.push_back(place(file, include.line) + '"' + include.name + "\" is not \"folder/file\" of this project");
  }
}

void check_include_homes(SourceFile const& file, Include const& include, std::vector<std::string>& found) {
  for (Home const& home : homes) {
    if (!std::regex_match(include.name, std::regex(home.includes))) continue;
    if (std::regex_match(file.path, std::regex(home.files))) continue;
    found.push_back(place(file, include.line) + include.name + ": " + home.what + " has its home in " + home.files);
  }
}

void check_code_homes(SourceFile const& file, std::vector<std::string>& found) {
  static std::regex const directive(R"(^\s*#\s*include\b)");
  std::string const code = code_of(file.text);
  for (Home const& home : homes) {
    if (*home.code == '\0' || std::regex_match(file.path, std::regex(home.files))) continue;
    std::regex const form(home.code);
    std::istringstream lines(code);
    std::string line;
    for (int number = 1; std::getline(lines, line); ++number) {
      std::smatch match;
      if (std::regex_search(line, directive) || !std::regex_search(line, match, form)) continue;
      found.push_back(place(file, number) + '\'' + match.str() + "': " + home.what + " has its home in " + home.files);
    }
  }
}

/// A family of models is named in its own folder and where it is registered; comments and texts count too.
void check_family_names(SourceFile const& file, std::vector<std::string>& found) {
  static std::regex const home(R"(src/model/gpt2/.*|src/model/families\.cpp)");
  static std::regex const name(R"([Gg][Pp][Tt]-?2)");
  if (std::regex_match(file.path, home)) return;
  std::istringstream lines(file.text);
  std::string line;
  for (int number = 1; std::getline(lines, line); ++number) {
    std::smatch match;
    if (std::regex_search(line, match, name)) {
      found.push_back(place(file, number) + '\'' + match.str() + "': a family of models is named in its folder alone");
    }
  }
}

} // namespace

std::vector<std::string> violations(SourceFile const& file) {
  std::vector<std::string> found;
  for (Include const& include : includes_of(file.text)) {
    check_arrows(file, include, found);
    check_include_homes(file, include, found);
  }
  check_code_homes(file, found);
  check_family_names(file, found);
  if (file.is_header() && !file.text.starts_with("#pragma once\n")) {
    found.push_back(place(file, 1) + "a header starts with #pragma once");
  }
  return found;
}

} // namespace kozero::structure
