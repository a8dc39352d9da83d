// kozero checkpoint: what a user sees of a run's checkpoints.
#include "app/cli.hpp"

#include "support/catch.hpp"

#include <csignal>
#include <filesystem>

using namespace kozero::test;
namespace fs = std::filesystem;

namespace {

ProgramResult checkpoint(std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), {KOZERO_BINARY, "checkpoint"});
  return run_program(arguments);
}

void flip_byte_in_the_middle(std::string const& file) {
  std::fstream stream(file, std::ios::binary | std::ios::in | std::ios::out);
  auto const at = static_cast<std::streamoff>(fs::file_size(file) / 2);
  stream.seekg(at);
  char const flipped = static_cast<char>(stream.get() ^ 64);
  stream.seekp(at);
  stream.put(flipped);
}

std::string line_of(std::string const& text, std::string const& word) {
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    if (line.find(word) != std::string::npos) return line;
  }
  return "";
}

} // namespace

TEST_CASE("checkpoint ls lists a run's checkpoints with their losses, and marks the newest and the best") {
  Workshop const shop;
  REQUIRE(run_program(on_ranks(2, shop.train("run", {"run.updates=9", "checkpoint.every=4", "checkpoint.keep=9",
                                                     "evaluate.every=4", "data.validation=0.2", "zero.stage=2",
                                                     "checkpoint.keep_best=1"})))
              .status == 0);
  auto const listed = checkpoint({"ls", shop.file("run")});
  INFO(listed.out << listed.err);
  CHECK(listed.status == 0);
  CHECK(times(listed.out, "\n") == 4);
  CHECK(times(listed.out, "best") == 1);
  CHECK(contains(line_of(listed.out, "newest"), {"     9  ", shop.hash("run")}));
  for (auto const& line : shop.metrics("run")) {
    if (!line.contains("batch") || (line.at("batch") != 4 && line.at("batch") != 8)) continue;
    char const* const key = line.contains("loss") ? "loss" : "val_loss";
    std::ostringstream loss;
    loss.precision(4);
    loss << std::fixed << line.at(key).get<double>();
    CHECK(contains(line_of(listed.out, "     " + line.at("batch").dump() + "  "), {loss.str()}));
  }
  auto const none = checkpoint({"ls", shop.file("nowhere")});
  CHECK(none.status == 2);
  CHECK(contains(none.err, {"nowhere", "not the folder of a run"}));
}

TEST_CASE("checkpoint verify tells a whole checkpoint from a damaged one") {
  Workshop const shop;
  REQUIRE(run_program(on_ranks(3, shop.train("run", {"zero.stage=3"}))).status == 0);
  auto const whole = checkpoint({"verify", shop.file("run")});
  INFO(whole.out << whole.err);
  CHECK(whole.status == 0);
  CHECK(contains(whole.out, {"step-00000010", "whole", "5 files"}));
  auto const old = checkpoint({"verify", KOZERO_SOURCE_DIR "/tests/reference/checkpoints-v1/stage-1/step-00000004"});
  INFO(old.err);
  CHECK(old.status == 0);
  CHECK(contains(old.err, {"do not say of which save they are"}));
  flip_byte_in_the_middle(shop.file("run/checkpoints/latest/rank-00001.h5"));
  auto const damaged = checkpoint({"verify", shop.file("run/checkpoints/latest")});
  INFO(damaged.err);
  CHECK(damaged.status == 1);
  CHECK(contains(damaged.err, {"rank-00001.h5", "is damaged"}));
}

TEST_CASE("checkpoint diff finds runs of all stages the same, and names where others differ") {
  Workshop const shop;
  for (char const* const stage : {"1", "3"}) {
    auto const train = shop.train(stage, {std::string("zero.stage=") + stage, "checkpoint.every=5"});
    REQUIRE(run_program(on_ranks(2, train)).status == 0);
  }
  REQUIRE(run_program(shop.train("other", {"optimizer.weight_decay=0.2"})).status == 0);
  REQUIRE(run_program(shop.train("deep", {"model.layers=3"})).status == 0);

  auto const same = checkpoint({"diff", shop.file("1"), shop.file("3")});
  INFO(same.out << same.err);
  CHECK(same.status == 0);
  CHECK(contains(same.out, {"are the same bits"}));
  auto const later = checkpoint({"diff", shop.file("1/checkpoints/step-00000005"), shop.file("1")});
  INFO(later.out << later.err);
  CHECK(later.status == 1);
  CHECK(contains(later.out,
                 {"update 5", "update 10", "first difference:   wte.weight/master [0, 0]", "elements differ"}));
  CHECK(checkpoint({"diff", shop.file("1"), shop.file("other")}).status == 1);
  auto const models = checkpoint({"diff", shop.file("1"), shop.file("deep")});
  CHECK(models.status == 1);
  CHECK(contains(models.err, {"different models", "model.layers"}));
}

TEST_CASE("checkpoint verify is not content with a checkpoint of which nobody knows what it should have") {
  Workshop const shop;
  REQUIRE(run_program(shop.train("run", {})).status == 0);
  fs::path const old = KOZERO_SOURCE_DIR "/tests/reference/checkpoints-v1/stage-1/step-00000004";
  fs::copy(old, shop.file("old"), fs::copy_options::recursive);
  std::string info = shop.read("old/checkpoint.h5");
  auto const at = info.find("model:");
  REQUIRE(at != std::string::npos);
  info.replace(at, 6, "medel:");
  std::ofstream(shop.file("old/checkpoint.h5"), std::ios::binary) << info;
  auto const found = checkpoint({"verify", shop.file("old")});
  INFO(found.out << found.err);
  CHECK(found.status == 1);
}

TEST_CASE("checkpoint diff tells loss scales apart") {
  Workshop const shop;
  for (char const* const scale : {"1024", "2048"}) {
    auto const train = shop.train(scale, {"precision.compute=fp16", "run.updates=0", "schedule.warmup=0",
                                          std::string("precision.loss_scale.initial=") + scale});
    auto const run = run_program(train);
    INFO(run.err);
    REQUIRE(run.status == 0);
  }
  auto const found = checkpoint({"diff", shop.file("1024"), shop.file("2048")});
  INFO(found.out << found.err);
  CHECK(found.status == 1);
  CHECK(contains(found.out, {"loss scale 1024", "loss scale 2048", "are the same bits"}));
  CHECK(checkpoint({"diff", shop.file("1024"), shop.file("1024")}).status == 0);
}

TEST_CASE("checkpoint prune keeps what it is told to, and does not touch a run that goes on") {
  Workshop const shop;
  {
    Program running(shop.train("run", {"run.updates=1000000", "checkpoint.every=2", "checkpoint.keep=1000000"}));
    wait_until([&] { return fs::exists(shop.file("run/checkpoints/step-00000008")); });
    auto const refused = checkpoint({"prune", shop.file("run"), "--keep", "1"});
    INFO(refused.err);
    CHECK(refused.status == 2);
    CHECK(contains(refused.err, {"in use by another run"}));
    running.signal(SIGTERM);
    running.wait();
  }
  auto const before = times(checkpoint({"ls", shop.file("run")}).out, "\n");
  auto const dry = checkpoint({"prune", shop.file("run"), "--keep", "2", "--dry-run"});
  CHECK(dry.status == 0);
  CHECK(contains(dry.out, {"would remove", "step-00000002"}));
  CHECK(times(checkpoint({"ls", shop.file("run")}).out, "\n") == before);
  auto const pruned = checkpoint({"prune", shop.file("run"), "--keep", "2"});
  INFO(pruned.out << pruned.err);
  CHECK(pruned.status == 0);
  CHECK(times(checkpoint({"ls", shop.file("run")}).out, "\n") == 3);
  CHECK(times(pruned.out, "removed /") == before - 3);
  CHECK(checkpoint({"prune", shop.file("run"), "--keep", "0"}).status == 2);
}
