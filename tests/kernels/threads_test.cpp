#include "support/catch.hpp"
#include "support/host_targets.hpp"

#include <cstdio>
#include <memory>
#include <string>

namespace {

struct Output {
  std::string bits;    // a line a kernel
  std::string threads; // that Kokkos had
};

// A process has one number of threads for its life, so each number is a process.
Output run_with(int threads, std::string const& argument = "") {
  std::string const command =
      "OMP_NUM_THREADS=" + std::to_string(threads) + " OMP_DYNAMIC=false '" KERNEL_BITS "' " + argument;
  std::unique_ptr<std::FILE, int (*)(std::FILE*)> const pipe(popen(command.c_str(), "r"), pclose);
  REQUIRE(pipe);
  std::string text;
  char buffer[4096];
  while (std::size_t const n = std::fread(buffer, 1, sizeof buffer, pipe.get())) text.append(buffer, n);
  std::size_t const mark = text.find("threads ");
  CAPTURE(command, text);
  REQUIRE(mark != std::string::npos);
  return {text.substr(0, mark), text.substr(mark)};
}

} // namespace

TEST_CASE("the bits of no kernel depend on the number of threads") {
  Output const one = run_with(1);
  REQUIRE(one.bits.find("gemm") != std::string::npos);
  for (int const threads : {2, 3, 4}) {
    Output const more = run_with(threads);
    CAPTURE(threads, more.threads);
    REQUIRE(more.bits == one.bits);
#ifdef KERNEL_BITS_HAS_THREADS
    REQUIRE(more.threads.starts_with("threads " + std::to_string(threads) + " "));
#endif
  }
}

TEST_CASE("the bits of no kernel of ours depend on the instruction set of the host's loops") {
  std::string const widest = run_with(2).bits;
  for (kozero::HostTarget const target : kozero::test::host_targets()) {
    std::string const name = name_of(target);
    Output const output = run_with(2, name);
    CAPTURE(output.threads);
    REQUIRE(output.threads.ends_with(" as " + name + "\n"));
    REQUIRE(output.bits == widest);
  }
}
