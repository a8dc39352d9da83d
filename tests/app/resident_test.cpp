// The memory that kozero plan promises, against what the system says a process took.
#include "app/cli.hpp"

#include "support/catch.hpp"
#include "support/temporary_folder.hpp"

#include <sys/resource.h>

using namespace kozero::test;
using Json = nlohmann::json;

TEST_CASE("training 100M parameters takes at most 1.05 times what plan says, of resident memory") {
  TemporaryFolder const folder;
  std::string const text = folder.write("text", std::string(20000, 'a'));
  std::vector<std::string> const keys = {"data.train=" + text,
                                         "data.validation=0",
                                         "run.dir=" + folder.file("run"),
                                         "run.updates=2",
                                         "schedule.warmup=0",
                                         "batch.micro=2",
                                         "batch.accumulate=1",
                                         "model.context=128",
                                         "model.vocabulary=20000",
                                         "zero.stage=2",
                                         "offload.optimizer=host",
                                         "precision.compute=bf16",
                                         "precision.gradients=compute"};
  auto const run = [&](std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), KOZERO_BINARY);
    arguments.insert(arguments.end(), keys.begin(), keys.end());
    auto result = run_program(arguments);
    INFO(result.err);
    REQUIRE(result.status == 0);
    return result.out;
  };
  std::string const deck = KOZERO_SOURCE_DIR "/inputs/gpt2-124m.yaml"; // with 20000 words 100M parameters
  Json const plan = Json::parse(run({"plan", deck, "--json"}));
  CHECK(plan.at("parameters") > 100'000'000);
  std::int64_t const planned = plan.at("device_bytes").get<std::int64_t>() + plan.at("host_bytes").get<std::int64_t>() +
                               plan.at("uncounted_bytes").get<std::int64_t>();
  run({"train", deck});
  rusage usage{};
  REQUIRE(getrusage(RUSAGE_CHILDREN, &usage) == 0); // of the largest child
  std::int64_t const resident = std::int64_t{usage.ru_maxrss} * 1024;
  INFO("planned " << planned << ", resident " << resident);
  CHECK(static_cast<double>(resident) <= 1.05 * static_cast<double>(planned));
  CHECK(static_cast<double>(resident) >= 0.9 * static_cast<double>(planned)); // the plan is no mere upper bound
}
