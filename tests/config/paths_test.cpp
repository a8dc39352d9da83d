#include "config/paths.hpp"
#include "support/catch.hpp"

#include <cstdlib>

using namespace kozero;

TEST_CASE("paths that wait for a shell are refused with what it would have made of them") { // CASES 40
  ::setenv("HOME", "/home/someone", 1);
  ::setenv("KOZERO_TEST_FOLDER", "scratch", 1);
  ::unsetenv("KOZERO_TEST_NOTHING");
  auto const advice = [](std::string const& path) {
    std::string const fault = path_fault(path);
    auto const semicolon = fault.rfind("; write ");
    return semicolon == std::string::npos ? fault : fault.substr(semicolon + 8);
  };
  CHECK(advice("~/runs/a") == "/home/someone/runs/a");
  CHECK(advice("~") == "/home/someone");
  CHECK(advice("$HOME/x") == "/home/someone/x");
  CHECK(advice("/data/${KOZERO_TEST_FOLDER}/x-$KOZERO_TEST_FOLDER.bin") == "/data/scratch/x-scratch.bin");
  CHECK(advice("~/$KOZERO_TEST_FOLDER") == "/home/someone/scratch");
  CHECK(advice("$KOZERO_TEST_NOTHING") == "the path out");
  CHECK(path_fault("~other/x").find("'~other/x' has ~other in it (") == 0);
  CHECK(advice("~other/x") == "the path out");
  CHECK(path_fault("runs/$HOME").find("$HOME in it") != std::string::npos);
}

TEST_CASE("other paths are taken as they are") {
  for (char const* path : {"", "runs/run", "/abs/x", "./~", "a~b", "x/~/y", "5$", "a$ b", "$", "0.05", "C$-x"}) {
    INFO(path);
    CHECK(path_fault(path).empty());
  }
}
