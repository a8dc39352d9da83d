// The main of every test program: MPI and Kokkos up, Catch2's session, and a failure on one rank ends all ranks.
#if KOZERO_CATCH2 < 3
#define CATCH_CONFIG_RUNNER
#endif
#include "support/catch.hpp"

#include "core/log.hpp"
#include "core/runtime.hpp"
#include "kernels/gemm_workspace.hpp"
#include "model/families.hpp"

#include <exception>
#include <iostream>

namespace {

// A rank that fails must not leave the others waiting in a collective.
int run_tests(kozero::Runtime const& runtime, int argc, char** argv) {
  Catch::Session session;
  int const usage = session.applyCommandLine(argc, argv);
  if (usage != 0) return usage;
  // Ranks run the same cases in the same order; the first failure stops the rank.
  session.configData().abortAfter = runtime.ranks() > 1 ? 1 : session.configData().abortAfter;
  kozero::Ledger ledger;
  kozero::GemmWorkspace const workspace(kozero::LazyLane(), kozero::Fp32Products::exact, ledger);
  return session.run();
}

} // namespace

int main(int argc, char** argv) {
  kozero::Runtime runtime(argc, argv);
  kozero::log::start(kozero::log::Voice::silent);
  kozero::register_model_families();
  int failures = 1;
  try {
    failures = run_tests(runtime, argc, argv);
  } catch (std::exception const& error) { // of what tests share
    std::cout << error.what() << std::endl;
  }
  if (failures != 0 && runtime.ranks() > 1) {
    std::cerr << "rank " << runtime.rank() << " of " << runtime.ranks() << " failed\n" << std::flush;
    kozero::Runtime::abort(1);
  }
  return failures;
}
