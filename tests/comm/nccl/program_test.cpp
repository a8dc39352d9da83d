// The program, by NCCL: what a user sees when all is well, and when it is not.
#include "app/cli.hpp"
#include "support/catch.hpp"
#include "support/messages.hpp"

using namespace kozero;
using namespace kozero::test;

namespace {

std::vector<std::string> by_nccl(int ranks, std::vector<std::string> arguments) {
  arguments[0] = KOZERO_NCCL_BINARY;
  return on_ranks(ranks, std::move(arguments));
}

} // namespace

TEST_CASE("the start table says that ranks exchange by NCCL, and states are those by MPI") {
  Workshop const workshop;
  std::vector<std::string> const keys = {"zero.stage=3", "run.updates=3", "batch.global=6", "batch.accumulate=none"};
  auto by = [&](std::string const& transport) {
    auto more = keys;
    more.push_back("parallel.transport=" + transport);
    return run_program(by_nccl(3, workshop.train(transport, more)));
  };
  auto const nccl = by("auto");
  INFO(nccl.err);
  CHECK(nccl.status == 0);
  CHECK(says(nccl.err, "exchange    NCCL 2.28.9; sums by kernels"));
  auto const mpi = by("mpi");
  CHECK(mpi.status == 0);
  CHECK(says(mpi.err, ") (parallel.transport is mpi)"));
  auto const device = by("mpi-device");
  INFO(device.err);
  CHECK(device.status == 0);
  CHECK(says(device.err, ", which reaches device memory; sums by kernels"));
  CHECK(workshop.hash("auto") == workshop.hash("mpi"));
  CHECK(workshop.hash("mpi-device") == workshop.hash("mpi"));
}

TEST_CASE("a run whose NCCL fails on one rank ends at once, and says where and why") {
  Workshop const workshop;
  for (char const* stage : {"0", "3"}) {
    CAPTURE(stage);
    Program program(by_nccl(3, workshop.train(stage, {"run.updates=100000", std::string("zero.stage=") + stage,
                                                      "run.log_every=0"})),
                    {{"KOZERO_STAND_IN_FAILS", "1:100"}});
    auto const result = program.wait(std::chrono::seconds(60));
    INFO(result.err);
    CHECK(result.status != 0);
    CHECK(says(result.err, "rank 1 on host"));
    CHECK(says(result.err, "NCCL failed in "));
    CHECK((says(result.err, " of gradients (") || says(result.err, " of parameters (")));
    CHECK(says(result.err, ", collective number "));
    CHECK(says(result.err, "unhandled system error"));
  }
}

TEST_CASE("the self-test passes by NCCL") {
  Workshop const workshop;
  auto const result = run_program(
      by_nccl(2, {"", "selftest", KOZERO_SOURCE_DIR "/inputs/tests/odd.yaml", "data.train=" + workshop.file("text"),
                  "data.format=text", "run.dir=" + workshop.file("run"), "parallel.transport=nccl"}));
  INFO(result.out + result.err);
  CHECK(result.status == 0);
  CHECK(says(result.out + result.err, "selftest passed"));
}
