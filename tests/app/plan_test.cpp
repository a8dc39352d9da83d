// kozero plan as its users call it, and what train says of it at its end.
#include "app/cli.hpp"

#include "support/catch.hpp"

using namespace kozero::test;
using Json = nlohmann::json;

namespace {

std::string const odd = KOZERO_SOURCE_DIR "/inputs/tests/odd.yaml";

ProgramResult plan(std::vector<std::string> const& more) {
  std::vector<std::string> arguments = {KOZERO_BINARY, "plan", odd};
  arguments.insert(arguments.end(), more.begin(), more.end());
  return run_program(arguments);
}

Json planned(std::vector<std::string> more) {
  more.emplace_back("--json");
  auto const result = plan(more);
  INFO(result.err);
  REQUIRE(result.status == 0);
  return Json::parse(result.out);
}

/// The table at the end of train: {predicted, measured, "=" or the difference} of each line.
std::vector<std::string> verdicts(std::string const& printed) {
  std::vector<std::string> verdicts;
  std::istringstream lines(printed.substr(printed.find("rank 0's memory")));
  for (std::string line; std::getline(lines, line) && !line.starts_with("done");) {
    if (line.starts_with("  ")) verdicts.push_back(line.substr(line.find_last_of(' ') + 1));
  }
  return verdicts;
}

} // namespace

TEST_CASE("plan prints memory, traffic, checkpoint and the stages, of a deck whose data is nowhere") {
  auto const page = plan({"--ranks", "64", "zero.stage=2", "activations.recompute=unit", "memory.device_limit=1MiB",
                          "precision.compute=bf16"});
  INFO(page.out << page.err);
  CHECK(page.status == 0);
  CHECK(page.err.empty());
  CHECK(contains(page.out, {"11697 parameters", "64 ranks", "parameters ", "gradients ", "master ", "first moment ",
                            "second moment ", "activations ", "recompute peak ", "logits ", "staging ", "workspace ",
                            "1.0 MiB", "3 calls of all_gather", "3 calls of reduce_scatter", "device to host",
                            "checkpoint", "    > 2", "31.4 GB"}));
  for (std::istringstream lines(page.out); !lines.eof();) {
    std::string line;
    std::getline(lines, line);
    INFO(line);
    CHECK(line.size() <= 120);
    CHECK(!line.ends_with(' '));
  }
}

TEST_CASE("plan says what the deck asks of offload") {
  std::vector<std::string> const deck = {"zero.stage=2", "offload.optimizer=host", "offload.ratio=0.25",
                                         "offload.delayed_update.start=7"};
  CHECK(contains(plan(deck).out, {"\n            offload.optimizer host, ratio 0.25, delayed_update.start 7\n"}));
  CHECK(contains(plan({}).out, {"offload.optimizer none, ratio 1, delayed_update.start none\n"}));
  Json const json = planned(deck);
  CHECK(json.at("offload") == "host");
  CHECK(json.at("offload_ratio") == 0.25);
  CHECK(json.at("delayed_update_start") == 7);
  CHECK(planned({}).at("delayed_update_start").is_null());
}

TEST_CASE("plan names the attention that runs, and why") {
  CHECK(contains(plan({}).out, {"\nattention   tile kernel ("}));
  CHECK(planned({}).at("attention").get<std::string>().starts_with("tile kernel ("));
}

TEST_CASE("a plan of several processes is refused once, and says how to ask for so many ranks") {
  auto const refused = run_program(on_ranks(3, {KOZERO_BINARY, "plan", odd}));
  INFO(refused.out << refused.err);
  CHECK(refused.status == 2);
  CHECK(refused.out.find("Memory") == std::string::npos);
  CHECK(times(refused.out + refused.err, "mpiexec started 3 processes") == 1);
  CHECK(contains(refused.out + refused.err, {"start it alone: kozero plan DECK --ranks 3"}));
  CHECK(run_program(on_ranks(1, {KOZERO_BINARY, "plan", odd})).status == 0);
  CHECK(contains(run_program({KOZERO_BINARY, "plan", "--help"}).out, {"without mpiexec: --ranks says how many"}));
}

TEST_CASE("plan --json says all of it to scripts") {
  Json const json = planned({"--ranks", "3", "zero.stage=3", "batch.accumulate=2", "memory.host_limit=1MiB"});
  CHECK(json.at("parameters") == 11697);
  CHECK(json.at("ranks") == 3);
  CHECK(json.at("stage") == 3);
  CHECK(json.at("batch") == Json{{"micro", 2}, {"accumulate", 2}, {"global", 12}, {"context", 33}});
  CHECK(json.at("compute") == "fp32");
  CHECK(json.at("device_limit").is_null());
  CHECK(json.at("host_limit") == 1 << 20);
  CHECK(json.at("device_fits") == true);
  CHECK(json.at("host_fits") == false); // messages take 32 MiB
  CHECK(json.at("fits") == false);
  CHECK(json.at("checkpoint_bytes") == 12 * 11697);
  // Blocks of 257*21+33*21, 12*21*21+13*21 and 42 elements, in shards of a multiple of 8.
  auto const shard = [](int size) { return (size + 23) / 24 * 8; };
  int const elements = shard(6090) + shard(5565) + shard(42);
  CHECK(json.at("memory").at("device").at("first_moment") == 4 * elements);
  CHECK(json.at("memory").at("device").at("parameters") == 4 * elements);
  CHECK(!json.at("memory").at("device").contains("master")); // the fp32 parameters are it
  CHECK(json.at("memory").at("device").at("gather_ring") == 3 * 4 * (shard(6090) + shard(5565) + shard(42)));
  int const edges = 2 * 3 * 65536 * 4; // of the state hash: a chunk in and out for each of three kinds
  CHECK(json.at("memory").at("pinned").at("staging") == (32 << 20) / 96 * 96 + edges);
  CHECK(json.at("received").at("gradients") ==
        Json{{"collective", "reduce_scatter"}, {"calls", 6}, {"bytes", 2 * 2 * 4 * elements}});
  std::int64_t bytes = 0;
  for (auto const& row : json.at("memory").at("device")) bytes += row.get<std::int64_t>();
  CHECK(json.at("device_bytes") == bytes);
  REQUIRE(json.at("stages").size() == 4);
  CHECK(json.at("stages").at(3).at("memory") == json.at("memory"));
  CHECK(json.at("stages").at(0).at("device_bytes") > json.at("device_bytes"));
  CHECK(json.at("paper").at("bytes").at(0) == 120000000000);
  CHECK(planned({}).at("ranks") == 1);
}

TEST_CASE("plan names the transport, and with hosts what comes from the own one and from others") {
  CHECK(contains(plan({"parallel.transport=mpi-device"}).out, {"\ntransport   mpi-device\n"}));
  std::vector<std::string> const hosts = {"--ranks",          "1024",
                                          "--ranks-per-host", "8",
                                          "zero.stage=1",     "parallel.transport=nccl",
                                          "--rates",          "flops=1e9,within=1e9,between=1e8,latency=1e-5"};
  auto const page = plan(hosts);
  INFO(page.out << page.err);
  CHECK(page.status == 0);
  CHECK(contains(page.out, {"\ntransport   nccl; 128 hosts of 8 ranks, sums within hosts first and then between them\n",
                            "in all    own host other hosts\n", "Predicted time of an update", "\n   1024 "}));
  for (std::istringstream lines(page.out); !lines.eof();) {
    std::string line;
    std::getline(lines, line);
    INFO(line);
    CHECK(line.size() <= 120);
  }
  Json const json = planned(hosts);
  CHECK(json.at("transport") == "nccl");
  CHECK(json.at("ranks_per_host") == 8);
  CHECK(json.at("ranks_of_first_sums") == 8);
  Json const& gradients = json.at("received").at("gradients");
  CHECK(gradients.at("own_host_bytes").get<std::int64_t>() + gradients.at("between_hosts_bytes").get<std::int64_t>() ==
        gradients.at("bytes").get<std::int64_t>());
  CHECK(gradients.at("between_hosts_bytes") > 0);
  CHECK(gradients.at("messages") == gradients.at("calls").get<std::int64_t>() * 1023);
  CHECK(json.at("rates").at("between") == 1e8);
  REQUIRE(json.at("predicted").size() == 8);
  CHECK(json.at("predicted").at(7).at("ranks") == 1024);
  CHECK(json.at("predicted").at(0).at("efficiency") == 1.0);
  Json const without = planned({"--ranks", "1024"});
  CHECK(without.at("ranks_per_host").is_null());
  CHECK(!without.contains("predicted"));
  CHECK(!without.at("received").at("gradients").contains("between_hosts_bytes"));
}

TEST_CASE("a plan that cannot be made is refused with status 2") {
  for (std::vector<std::string> const& more :
       std::vector<std::vector<std::string>>{{"--ranks", "0"},
                                             {"--ranks", "-3"},
                                             {"--ranks", "two"},
                                             {"--ranks"},
                                             {"--fly"},
                                             {"--ranks-per-host", "0"},
                                             {"--rates", "flops=1,within=1,between=1,latency=0"}, // of what hosts?
                                             {"--ranks-per-host", "2", "--rates", ""},
                                             {"--ranks-per-host", "2", "--rates", "flops=1"},
                                             {"zero.stage=4"},
                                             {"zero.stag=1"},
                                             {"run.reproducibility=topology", "--ranks", "3"},
                                             {"batch.accumulate=none", "batch.global=10", "--ranks", "4"}}) {
    auto const refused = plan(more);
    INFO(more.front());
    CHECK(refused.status == 2);
    CHECK(refused.out.empty());
    CHECK(!refused.err.empty());
  }
  auto const no_deck = run_program({KOZERO_BINARY, "plan", "none.yaml"});
  CHECK(no_deck.status == 2);
  CHECK(contains(no_deck.err, {"none.yaml", "No such file"}));
}

TEST_CASE("train prints measured beside predicted, and they are equal") {
  Workshop const shop;
  for (std::string const stage : {"0", "1", "2", "3"}) {
    auto const result =
        run_program(on_ranks(2, shop.train("run" + stage, {"zero.stage=" + stage, "run.updates=3", "batch.accumulate=2",
                                                           "data.validation=0.1", "evaluate.every=1", "model.layers=3",
                                                           "precision.compute=bf16"})));
    INFO(result.err);
    REQUIRE(result.status == 0);
    auto const all = verdicts(result.err);
    CHECK(all.size() >= 14);
    CHECK(std::count(all.begin(), all.end(), "=") == static_cast<std::ptrdiff_t>(all.size()));
  }
}
