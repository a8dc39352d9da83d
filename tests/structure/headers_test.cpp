// Every header compiles by itself: whoever includes it needs nothing before it.
//
// Kokkos takes longer to read than all else, so headers that include it, by themselves or through others, get it in
// compiled form up front. That hides nothing: a header that needs Kokkos without including it is not one of those, and
// is compiled without.
#include "structure/source_tree.hpp"
#include "support/catch.hpp"
#include "support/temporary_folder.hpp"

#include <algorithm>
#include <atomic>
#include <map>
#include <mutex>
#include <set>
#include <thread>

using namespace kozero::structure;
using kozero::test::TemporaryFolder;

namespace {

class Compiler {
public:
  Compiler() {
    folder_.write("kokkos.hpp", "#include <Kokkos_Core.hpp>\n");
    std::string const failure =
        run("-x c++-header " + folder_.file("kokkos.hpp") + " -o " + folder_.file("kokkos.hpp.gch"), "kokkos");
    if (!failure.empty()) throw std::runtime_error(failure);
  }

  enum class Ahead { nothing, kokkos };
  /// What the compiler says about a file that is nothing but this text; empty when it is content.
  std::string refusal(std::string const& text, Ahead ahead) const {
    std::string const name = "header" + std::to_string(files_++);
    std::string const file = folder_.write(name + ".cpp", text);
    return run((ahead == Ahead::kokkos ? "-include " + folder_.file("kokkos.hpp") + " " : "") + "-fsyntax-only " + file,
               name);
  }

private:
  std::string run(std::string const& arguments, std::string const& name) const {
    std::string const command = std::string("'" KOZERO_COMPILER "' '@" KOZERO_COMPILER_FLAGS "' ") + arguments + " > " +
                                folder_.file(name + ".log") + " 2>&1";
    return std::system(command.c_str()) == 0 ? "" : command + '\n' + folder_.read(name + ".log");
  }

  TemporaryFolder folder_;
  mutable std::atomic<int> files_ = 0;
};

using Includes = std::map<std::string, std::vector<Include>>; // of each file, by the name that includes call it

Includes all_includes() {
  Includes includes;
  for (auto const& file : read_tree(KOZERO_SOURCE_DIR, {"src", "kernels", "io", "app"})) {
    std::string const& path = file.path;
    includes[path.starts_with("src/") ? path.substr(4) : path] = includes_of(file.text);
  }
  return includes;
}

/// The headers that are no source's first include of its own name.
std::vector<std::string> headers_without_source(Includes const& includes) {
  std::vector<std::string> headers;
  for (auto const& [path, names] : includes) {
    if (!path.ends_with(".hpp")) continue;
    auto const source = includes.find(path.substr(0, path.size() - 4) + ".cpp");
    if (source == includes.end() || source->second.front().name != path) headers.push_back(path);
  }
  return headers;
}

/// The headers that Kokkos is read with.
std::set<std::string> headers_with_kokkos(Includes const& includes) {
  std::set<std::string> with;
  std::size_t before = 0;
  do {
    before = with.size();
    for (auto const& [path, names] : includes) {
      for (auto const& include : names) {
        if (include.name.starts_with("Kokkos_") || with.contains(include.name)) with.insert(path);
      }
    }
  } while (with.size() > before);
  return with;
}

} // namespace

TEST_CASE("every header compiles by itself") {
  Includes const includes = all_includes();
  auto const with_kokkos = headers_with_kokkos(includes);
  CHECK((with_kokkos.contains("core/kokkos.hpp") && with_kokkos.contains("train/trainer.hpp")));
  CHECK((!with_kokkos.contains("core/error.hpp") && !with_kokkos.contains("config/config.hpp")));

  auto const headers = headers_without_source(includes);
  CHECK(std::ranges::count(headers, "core/views.hpp") == 1);
  CHECK(std::ranges::count(headers, "core/error.hpp") == 0);

  Compiler const compiler;
  std::atomic<std::size_t> next = 0;
  std::mutex lock;
  std::string refusals;
  auto const work = [&] {
    for (std::size_t i = next++; i < headers.size(); i = next++) {
      auto const ahead = with_kokkos.contains(headers[i]) ? Compiler::Ahead::kokkos : Compiler::Ahead::nothing;
      std::string const refusal = compiler.refusal("#include \"" + headers[i] + "\"\n", ahead);
      std::lock_guard const guard(lock);
      refusals += refusal;
    }
  };
  {
    std::vector<std::jthread> workers(std::max(1u, std::thread::hardware_concurrency()));
    for (auto& worker : workers) worker = std::jthread(work);
  }
  INFO(refusals);
  CHECK(refusals.empty());
}

TEST_CASE("a header that needs what it does not include is refused") {
  Compiler const compiler;
  CHECK(compiler.refusal("#include \"core/error.hpp\"\n", Compiler::Ahead::nothing).empty());
  CHECK(!compiler.refusal("inline std::vector<int> a;\n", Compiler::Ahead::nothing).empty());
  CHECK(!compiler.refusal("inline Kokkos::View<int*> a;\n", Compiler::Ahead::nothing).empty());
  CHECK(compiler.refusal("inline Kokkos::View<int*> a;\n", Compiler::Ahead::kokkos).empty());
}
