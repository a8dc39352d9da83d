// Runs of the program: what they leave, how they stop, how they go on.
#include "app/cli.hpp"

#include "support/catch.hpp"

#include <filesystem>

using namespace kozero::test;

TEST_CASE("a run leaves its deck, its metrics and a checkpoint") {
  Workshop const shop;
  auto const result = run_program(shop.train("run", {"optimizer.lr=0.02"}));
  INFO(result.err);
  CHECK(result.status == 0);
  CHECK(result.out.empty());
  CHECK(result.err.find('\r') == std::string::npos); // no progress line: standard error is no terminal
  CHECK(shop.metrics("run").size() == 11);
  CHECK(shop.newest_step("run") == 10);
  auto const deck = run_program({KOZERO_BINARY, "check", shop.file("run/deck.yaml")});
  CHECK(deck.status == 0);
  CHECK(contains(deck.out, {"lr: 0.02"}));
}

TEST_CASE("a folder that holds a run is written over only when that is asked for") {
  Workshop const shop;
  REQUIRE(run_program(shop.train("run")).status == 0);
  std::string const metrics = shop.read("run/metrics.jsonl");
  std::string const deck = shop.read("run/deck.yaml");
  std::string const hash = shop.hash("run");

  auto const refused = run_program(shop.train("run", {"run.seed=5"}));
  CHECK(refused.status == 2);
  CHECK(contains(refused.err, {shop.file("run"), "--resume", "--overwrite"}));
  auto const another = run_program(shop.train("run", {"run.seed=5", "--resume"}));
  CHECK(another.status == 2);
  CHECK(contains(another.err, {"run.seed: 1337 -> 5", "forbidden"}));
  auto const another_batch = run_program(shop.train("run", {"batch.micro=4", "--resume"}));
  CHECK(another_batch.status == 2);
  CHECK(contains(another_batch.err, {"batches of 2 windows", "batch.global: 2"}));
  CHECK(shop.read("run/metrics.jsonl") == metrics);
  CHECK(shop.read("run/deck.yaml") == deck);

  // A run that is at its end has nothing to go on with, and is the same after it.
  CHECK(run_program(shop.train("run", {"--resume"})).status == 0);
  CHECK(shop.metrics("run").size() == 11);
  CHECK(shop.hash("run") == hash);

  CHECK(run_program(shop.train("run", {"run.seed=5", "run.updates=3", "--overwrite"})).status == 0);
  CHECK(shop.metrics("run").size() == 4);
  CHECK(shop.newest_step("run") == 3);
  CHECK(!std::filesystem::exists(shop.file("run/checkpoints/step-00000010")));
}

TEST_CASE("resuming where there is nothing is refused") {
  Workshop const shop;
  auto const refused = run_program(shop.train("run", {"--resume"}));
  CHECK(refused.status != 0);
  CHECK(contains(refused.err, {shop.file("run")}));
}

TEST_CASE("the time limit ends a run of several ranks with 75, and the run can be resumed") {
  Workshop const shop;
  auto const limited =
      run_program(on_ranks(2, shop.train("run", {"run.updates=1000000", "run.time_limit=0.3s", "zero.stage=3"})));
  INFO(limited.err);
  CHECK(limited.status == 75);
  CHECK(contains(limited.err, {"time limit", "--resume"}));
  std::int64_t const updates = shop.metrics("run").back().at("updates_applied");
  CHECK(shop.newest_step("run") == updates);
  // On one rank, with the batch that it had.
  auto const resumed = run_program(shop.train(
      "run", {"run.updates=" + std::to_string(updates + 2), "batch.micro=2", "batch.accumulate=2", "--resume"}));
  INFO(resumed.err);
  CHECK(resumed.status == 0);
  CHECK(shop.metrics("run").back().at("updates_applied") == updates + 2);
}

TEST_CASE("the number of threads does not change a bit") {
  Workshop const shop;
  for (char const* compute : {"fp32", "bf16"}) {
    auto const trained_with = [&](char const* threads) {
      std::string const run = std::string("run ") + compute + ' ' + threads;
      auto const result = run_program(shop.train(run, {std::string("precision.compute=") + compute, "run.updates=3",
                                                       "model.layers=2", "model.width=64", "model.heads=4",
                                                       "model.context=64", "model.vocabulary=256", "batch.micro=4"}),
                                      {{"OMP_NUM_THREADS", threads}});
      INFO(result.err);
      CHECK(result.status == 0);
      CHECK(contains(result.err, {std::string(threads) + " a rank"})); // it had so many
      return shop.hash(run);
    };
    INFO(compute);
    CHECK(trained_with("2") == trained_with("1"));
  }
}

TEST_CASE("generate writes the prompt and what follows, the same each time") {
  Workshop const shop;
  REQUIRE(run_program(shop.train("bytes", {"model.vocabulary=256"})).status == 0);
  auto const generate = [&](std::string const& run, std::vector<std::string> const& more) {
    std::vector<std::string> arguments = {KOZERO_BINARY, "generate", "--checkpoint", shop.file(run), "--tokens", "40"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return run_program(arguments);
  };
  auto const greedy = generate("bytes", {"--prompt", "line 1", "--temperature", "0"});
  INFO(greedy.err);
  CHECK(greedy.status == 0);
  CHECK(greedy.out.starts_with("line 1"));
  CHECK(greedy.out.size() == 6 + 40 + 1);
  CHECK(greedy.out == generate("bytes", {"--prompt", "line 1", "--temperature", "0", "--seed", "9"}).out);
  auto const drawn = generate("bytes", {"--prompt", "line 1", "--seed", "9"});
  CHECK(drawn.out == generate("bytes", {"--prompt", "line 1", "--seed", "9"}).out);
  CHECK(drawn.out != generate("bytes", {"--prompt", "line 1", "--seed", "10"}).out);

  // Trained on token ids: ids in, ids out.
  std::string ids_of_text;
  for (int i = 0; i < 2000; ++i) ids_of_text += {static_cast<char>(i % 251), '\0'};
  std::ofstream(shop.file("ids.bin"), std::ios::binary) << ids_of_text;
  REQUIRE(run_program(shop.train("ids", {"data.train=" + shop.file("ids.bin"), "data.format=uint16"})).status == 0);
  auto const ids = generate("ids", {"--prompt-tokens", "108,105,256"});
  CHECK(ids.status == 0);
  std::istringstream numbers(ids.out);
  std::vector<int> all;
  for (int id = 0; numbers >> id;) all.push_back(id);
  REQUIRE(all.size() == 43);
  CHECK((all[0] == 108 && all[1] == 105 && all[2] == 256));
  CHECK(generate("ids", {"--prompt", "line"}).status == 2);
  CHECK(generate("ids", {"--prompt-tokens", "257"}).status == 2);
  CHECK(generate("bytes", {"--prompt", ""}).status == 2);
  CHECK(generate("bytes", {"--temperature", "-1"}).status == 2);
}

TEST_CASE("a full disk ends a run with status 1, a message, and no half checkpoint") {
  Workshop const shop;
  // A limit on the size of files is met like a full disk. MPI's shared memory would meet it first.
  std::string command = "ulimit -f 14; exec";
  for (auto const& word : shop.train("full")) command += " '" + word + "'";
  auto const result = run_program({"sh", "-c", command}, {{"UCX_TLS", "self"}});
  INFO(result.err);
  CHECK(result.status == 1);
  CHECK(times(result.err, "is not saved") == 1);
  CHECK(std::filesystem::is_empty(shop.file("full/checkpoints")));
}

TEST_CASE("a memory limit that is too small is told once, with what to do") {
  Workshop const shop;
  auto const result = run_program(on_ranks(2, shop.train("limited", {"memory.device_limit=200KiB"})));
  INFO(result.err);
  CHECK(result.status != 0);
  CHECK(times(result.err, "memory.device_limit") == 1);
}

TEST_CASE("a run that starts from another folder's checkpoint and stops at once has one of its own") {
  Workshop const shop;
  REQUIRE(run_program(shop.train("first")).status == 0);
  auto const again = [&](std::vector<std::string> more) {
    more.insert(more.end(), {"--resume-from", shop.file("first")});
    return run_program(shop.train("second", more));
  };
  CHECK(again({"run.time_limit=1ms", "run.updates=1000"}).status == 75);
  CHECK(std::filesystem::exists(shop.file("second/checkpoints/latest")));
  CHECK(shop.hash("second") == shop.hash("first"));
}

TEST_CASE("warnings are told once, not once a rank") {
  Workshop const shop;
  auto const result = run_program(on_ranks(2, shop.train("warned", {"schedule.warmup=1000", "--dry-run"})));
  INFO(result.err);
  CHECK(result.status == 0);
  CHECK(times(result.err, "schedule.warmup") == 1);
}
