#include "support/catch.hpp"

#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>

namespace fs = std::filesystem;

TEST_CASE("mpi.h is included by sources of src/comm and by the runtime, and by no header") {
  fs::path const root = KOZERO_SOURCE_DIR;
  std::set<std::string> found;
  for (char const* folder : {"src", "kernels", "io", "app"}) {
    if (!fs::exists(root / folder)) continue;
    for (auto const& entry : fs::recursive_directory_iterator(root / folder)) {
      if (!entry.is_regular_file()) continue;
      std::ostringstream text;
      text << std::ifstream(entry.path()).rdbuf();
      if (text.str().find("mpi.h>") == std::string::npos && text.str().find("mpi.h\"") == std::string::npos) continue;
      found.insert(fs::relative(entry.path(), root).generic_string());
    }
  }
  CHECK(found == std::set<std::string>{"src/comm/mpi_comm.cpp", "src/comm/world.cpp", "src/core/runtime.cpp"});
}
