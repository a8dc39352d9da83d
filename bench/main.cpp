// The main of the benchmarks: MPI and Kokkos up; rank 0 reports.
#include "core/log.hpp"
#include "core/runtime.hpp"
#include "kernels/gemm_workspace.hpp"

#include <benchmark/benchmark.h>

#include <exception>

namespace {

/// What ranks other than 0 say.
class Nothing final : public benchmark::BenchmarkReporter {
  bool ReportContext(Context const&) override { return true; }
  void ReportRuns(std::vector<Run> const&) override {}
};

} // namespace

int main(int argc, char** argv) {
  kozero::Runtime runtime(argc, argv);
  kozero::log::start(kozero::log::Voice::silent);
  try {
    benchmark::Initialize(&argc, argv);
    if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 2;
    kozero::Ledger ledger;
    kozero::GemmWorkspace const workspace(kozero::LazyLane(), kozero::Fp32Products::exact, ledger);
    Nothing nothing;
    benchmark::RunSpecifiedBenchmarks(runtime.rank() == 0 ? nullptr : &nothing);
    benchmark::Shutdown();
  } catch (std::exception const& error) {
    kozero::log::error("{}", error.what());
    kozero::Runtime::abort(1);
  }
}
