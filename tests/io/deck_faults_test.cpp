// Decks that are wrong: every fault is reported, at its line and column, and with what to do.
#include "core/error.hpp"
#include "io/deck.hpp"
#include "support/catch.hpp"

#include <cstdlib>
#include <sstream>

using namespace kozero;

namespace {

std::vector<std::string> faults_of(std::string const& text, std::vector<std::string> const& overrides = {}) {
  try {
    read_deck(text, "deck.yaml", overrides);
  } catch (InputError const& error) {
    CHECK(error.exit_code() == exit_bad_input);
    std::vector<std::string> lines;
    std::istringstream stream{std::string(error.what())};
    for (std::string line; std::getline(stream, line);) lines.push_back(line);
    return lines;
  }
  return {};
}

struct Row {
  std::string text;
  std::string begin; // of the one fault, with its place
  std::string part;  // of what it says
};

void check_rows(std::vector<Row> const& rows, std::string const& before, std::string const& after) {
  for (auto const& [text, begin, part] : rows) {
    INFO(text);
    auto const faults = faults_of(before + text + after);
    REQUIRE(faults.size() == 1);
    INFO(faults[0]);
    CHECK(faults[0].starts_with(begin));
    CHECK(faults[0].find(part) != std::string::npos);
  }
}

} // namespace

TEST_CASE("bad numbers: CASES 23", "[deck]") {
  std::string const at = "deck.yaml:2:17: optimizer.lr: ";
  check_rows(
      {{"nan", at + "'nan'", "not finite; write a number above 0"},
       {".NaN", at + "'.NaN'", "not finite"},
       {"inf", at, "not finite"},
       {"-.inf", at, "not finite"},
       {"-1", at + "-1", "out of range; write a number above 0"},
       {"0", at + "0", "out of range"},
       {"1e400", at + "'1e400'", "64-bit"},
       {"1e-400", at + "'1e-400'", "64-bit"},
       {"\"1e-4 \"", at + "'1e-4 '", "remove"},
       {"\"1e-4\"", at + "'1e-4'", "remove the quotes"},
       {"no", at + "'no'", "not a number"},
       {"0x10", at, "not a number"},
       {"5%", at, "'%' follows"},
       {"[1]", at, "a list"},
       {"{a: 1}", at, "a map"},
       {"", "deck.yaml:2:13: optimizer.lr: ", "no value; write a number above 0, or remove the key (then it is 0.001)"},
       {"~", "deck.yaml:2:13: optimizer.lr: ", "no value"},
       {"null", "deck.yaml:2:13: optimizer.lr: ", "no value"}},
      "data: {train: x}\noptimizer: {lr: ", "}\n");
  std::string const updates = "deck.yaml:2:16: run.updates: ";
  check_rows({{"1e3", updates + "'1e3'", "write 1000"},
              {"1.0", updates, "remove the point"},
              {"010", updates, "octal"},
              {"-1", updates + "-1", "out of range"},
              {"99999999999999999999", updates, "too large"},
              {"yes", updates, "not a whole number"},
              {"1K", updates, "'K' is no unit"},
              {"true", updates, "not a whole number"}},
             "data: {train: x}\nrun: {updates: ", "}\n");
  std::string const tied = "deck.yaml:2:15: model.tied: ";
  check_rows({{"no", tied + "'no'", "write true or false"},
              {"off", tied, "write true or false"},
              {"True", tied, "write true or false"},
              {"1", tied, "write true or false"},
              {"\"true\"", tied, "remove the quotes"}},
             "data: {train: x}\nmodel: {tied: ", "}\n");
}

TEST_CASE("bad units, words, pairs and texts", "[deck]") {
  check_rows({{"memory: {host_limit: 512}", "deck.yaml:2:22: memory.host_limit: '512'", "no unit"},
              {"memory: {host_limit: 512mb}", "deck.yaml:2:22: memory.host_limit: '512mb'", "unknown unit 'mb'"},
              {"run: {time_limit: 600}", "deck.yaml:2:19: run.time_limit: '600'", "no unit"},
              {"run: {time_limit: 5m}", "deck.yaml:2:19: run.time_limit: '5m'", "unknown unit 'm'"},
              {"run: {time_limit: 0s}", "deck.yaml:2:19: run.time_limit: 0s", "out of range"},
              {"schedule: {kind: cosin}", "deck.yaml:2:18: schedule.kind: 'cosin'", "constant, linear, cosine, wsd"},
              {"zero: {stage: 4}", "deck.yaml:2:15: zero.stage: 4", "from 0 to 3"},
              {"optimizer: {betas: 0.9}", "deck.yaml:2:20: optimizer.betas: ", "two numbers"},
              {"optimizer: {betas: [0.9]}", "deck.yaml:2:20: optimizer.betas: ", "a list of 1"},
              {"optimizer: {betas: [0.9, x]}", "deck.yaml:2:26: optimizer.betas: 'x'", "two numbers"},
              {"optimizer: {betas: [0.9, 1.0]}", "deck.yaml:2:20: optimizer.betas: [0.9, 1]", "below 1"},
              {"run: {name: ''}", "deck.yaml:2:13: run.name: ''", "empty"},
              {"run: {name: ' a'}", "deck.yaml:2:13: run.name: ' a'", "blank"},
              {"run: {name: \"a\\nb\"}", "deck.yaml:2:13: run.name: ", "control character"},
              {"run: {\"a\\nb\": 1}", "deck.yaml:2:7: unknown key 'a b'", "known here"},
              {"data2:\n  x: 1", "deck.yaml:2:1: unknown key 'data2'", "(did you mean 'data'?)"}},
             "data: {train: x}\n", "\n");
}

TEST_CASE("what offload and fp16 cannot be is refused", "[deck]") {
  check_rows({{"precision: {loss_scale: {initial: 1000}}", "deck.yaml:2:35: precision.loss_scale.initial: 1000",
               "power of two"},
              {"offload: {optimizer: host}", "deck.yaml:2:22: offload.optimizer: ", "stage 1, 2 or 3"},
              {"offload: {delayed_update: 40}", "deck.yaml:2:27: offload.delayed_update: ", "start"},
              {"offload: {ratio: 2}", "deck.yaml:2:18: offload.ratio: 2", "from 0 to 1"}},
             "data: {train: x}\n", "\n");
  CHECK(faults_of("data: {train: x}\nzero: {stage: 1}\noffload: {optimizer: host}\n").empty());
}

TEST_CASE("what is not one map of sections is refused", "[deck]") {
  check_rows({{"", "deck.yaml: ", "empty"},
              {"# only a comment\n", "deck.yaml: ", "empty"},
              {"---\n", "deck.yaml:", "not a map"},
              {"foo", "deck.yaml:1:1: ", "not a map"},
              {"- a\n- b\n", "deck.yaml:1:1: ", "not a map"},
              {"run:\ndata: {train: x}", "deck.yaml:1:1: run: ", "no keys"},
              {"data: {train: x}\nrun: 3", "deck.yaml:2:6: run: ", "is a section"},
              {"data: {train: x}\nrun: [1]", "deck.yaml:2:6: run: ", "is a section"},
              {"data: {train: x}\n? [a]\n: 1\n", "deck.yaml:2:3: ", "not the name of a key"},
              {"data: {train: x}\nrun:3\n", "deck.yaml:", "blank"},
              {"data: {train: x}\nrun: {seed: 1}\nrun: {seed: 2}\n", "deck.yaml:3:1: duplicate key 'run'", "line 2"},
              {"data: {train: x,\n  train: x}\n", "deck.yaml:2:3: duplicate key 'train'", "line 1"},
              {"data: {train: x}\n---\nrun: {seed: 1}\n", "deck.yaml:", "second document"},
              {"data: {train: x}\n---\n", "deck.yaml:", "second document"},
              {"data: &d {train: x}\n", "deck.yaml:1:7: ", "anchor"},
              {"data: {train: !!str x}\n", "deck.yaml:1:15: ", "tag"},
              {"run: {seed: 1}\n", "deck.yaml: data.train: ", "missing"}},
             "", "");
}

TEST_CASE("text that is not YAML is refused where it stops being so", "[deck]") {
  check_rows({{"data:\n\ttrain: x\n", "deck.yaml:2:1: ", "tab"},
              {"data:\n  train: x\n   format: text\n", "deck.yaml:3:10: ", "not YAML"},
              {"data: {train: \"x}\n", "deck.yaml:", "not YAML"},
              {"data: {train: x}\n]\n", "deck.yaml:2:1: ", "not YAML"},
              {"data: {train: a: b}\n", "deck.yaml:1:16: ", "not YAML"},
              {"data: *nothing\n", "deck.yaml:1:7: ", "not YAML"},
              {std::string("data: {train: x\x04}\n"), "deck.yaml:1:16: ", "control character 0x04"},
              {std::string("data: {train: \xc3\x28}\n"), "deck.yaml:1:15: ", "UTF-8"},
              {std::string("a\0b", 3), "deck.yaml:1:2: ", "control character 0x00"},
              {std::string(100'000, '['), "deck.yaml:", "not YAML"}},
             "", "");
}

TEST_CASE("aliases and merge keys are refused, and nothing else is said about them", "[deck]") {
  CHECK(faults_of("data: &d {train: x}\nrun: *d\nbatch: {<<: *d, micro: *d}\n") ==
        std::vector<std::string>{
            "deck.yaml:1:7: an anchor (&) is no part of a deck (every key says its own value); remove it",
            "deck.yaml:2:6: an alias (*) is no part of a deck (every key says its own value); write the value out",
            "deck.yaml:3:9: unknown key '<<' (a deck has no merge keys); write the keys out",
            "deck.yaml:3:13: an alias (*) is no part of a deck (every key says its own value); write the value out",
            "deck.yaml:3:24: an alias (*) is no part of a deck (every key says its own value); write the value out"});
}

TEST_CASE("all faults come at once, in the deck's order, then those of the command line", "[deck]") {
  std::string const text = "schedule:\n"                   // 1
                           "  warmup: 2e1\n"               // 2
                           "  min_lr: 1\n"                 // 3
                           "optimizer:\n"                  // 4
                           "  lr: 1e-3\n"                  // 5
                           "  gradient_cliping: 1\n"       // 6
                           "  lr: 1e-4\n"                  // 7
                           "model: {width: 21,\n"          // 8
                           "        heads: 4, tied: no}\n" // 9
                           "modle: {}\n"                   // 10
                           "zero: {stage: 5}\n";           // 11
  CHECK(
      faults_of(text, {"optimizer.lrr=1e-4", "run.updates=abc", "seed=3", "foo", "zero.stage"}) ==
      std::vector<std::string>{
          "deck.yaml:2:11: schedule.warmup: '2e1' is a real number where a whole one belongs; write 20",
          "deck.yaml:3:11: schedule.min_lr: 1 is above optimizer.lr = 0.001 (the schedule goes down to it); make it "
          "smaller",
          "deck.yaml:6:3: unknown key 'gradient_cliping' (did you mean 'clip'?)",
          "deck.yaml:7:3: duplicate key 'lr' (first in line 5); remove one",
          "deck.yaml:8:16: model.width: 21 is not a multiple of model.heads = 4 (each head takes an equal part of the "
          "width); change one",
          "deck.yaml:9:25: model.tied: 'no' is not a boolean; write true or false",
          "deck.yaml:10:1: unknown key 'modle' (did you mean 'model'?)",
          "deck.yaml:11:15: zero.stage: 5 is out of range; write a whole number from 0 to 3",
          "deck.yaml: data.train: is missing (there is no default); name the training file",
          "command line: optimizer.lrr: unknown key 'lrr' (did you mean 'lr'?)",
          "command line: run.updates: 'abc' is not a whole number; write a whole number from 0 to 1000000000000",
          "command line: seed: unknown key 'seed' (did you mean 'run.seed'?)",
          "command line: 'foo' is not key.path=value; write it like optimizer.lr=1e-4",
          "command line: 'zero.stage' is not key.path=value; write it like optimizer.lr=1e-4"});
}

TEST_CASE("the command line is read as strictly as the deck", "[deck]") {
  std::vector<std::vector<std::string>> const rows = {
      {"optimizer.lr=", "command line: optimizer.lr: has no value; write a number above 0"},
      {"optimizer.lr=-1", "command line: optimizer.lr: -1 is out of range; write a number above 0"},
      {"optimizer.lr=\"1e-4 \"", "command line: optimizer.lr: '1e-4 ' has blanks around the number; remove them"},
      {"optimizer.lr.x=1", "command line: optimizer.lr: is a map { }; write a number above 0"},
      {"optimizer=1", "command line: optimizer: is a section (not '1')"},
      {"optimizer={lr: 1, lr: 2}", "command line: optimizer.lr: duplicate key 'lr'"},
      {"optimizer..lr=1", "command line: 'optimizer..lr=1' is not key.path=value"},
      {"=1", "command line: '=1' is not key.path=value"},
      {"run.name=a: b: c", "command line: run.name: this is not YAML"},
      {"run.name=a\n---\nb", "command line: run.name: a second document"},
      {"schedule.warmpu=1", "command line: schedule.warmpu: unknown key 'warmpu' (did you mean 'warmup'?)"},
      {"model.heads=5", "command line: model.width: 128 is not a multiple of model.heads = 5"}};
  for (auto const& row : rows) {
    INFO(row[0]);
    auto const faults = faults_of("data: {train: x}\n", {row[0]});
    REQUIRE(faults.size() == 1);
    INFO(faults[0]);
    CHECK(faults[0].starts_with(row[1]));
  }
}

TEST_CASE("a misspelt key names the one that was meant", "[deck]") {
  std::vector<std::vector<std::string>> const rows = {{"optimizer: {weight_decy: 1}", "weight_decay"},
                                                      {"optimizer: {wieght_decay: 1}", "weight_decay"},
                                                      {"optimizer: {Lr: 1}", "lr"},
                                                      {"optimizer: {warmup: 1}", "schedule.warmup"},
                                                      {"optimiser: {lr: 1}", "optimizer"},
                                                      {"layers: 3", "model.layers"},
                                                      {"checkpoint: {evry: 3}", "every"},
                                                      {"offload: {delayed_update: {strat: 3}}", "start"},
                                                      {"batch: {micro_batch: 3}", "micro"}};
  for (auto const& row : rows) {
    INFO(row[0]);
    auto const faults = faults_of("data: {train: x}\n" + row[0]);
    REQUIRE(faults.size() == 1);
    INFO(faults[0]);
    CHECK(faults[0].ends_with("(did you mean '" + row[1] + "'?)"));
  }
  auto const faults = faults_of("data: {train: x}\nzero: {quux: 3}");
  REQUIRE(faults.size() == 1);
  CHECK(faults[0] == "deck.yaml:2:8: unknown key 'quux' (known here: stage)");
}

TEST_CASE("a key that stands twice, nested and with a dot, is refused", "[deck]") { // CASES 39
  std::string const nested = "optimizer: {lr: 1e-3}\n";
  std::string const dotted = "optimizer.lr: 5e-4\n";
  check_rows(
      {{nested + dotted, "deck.yaml:3:1: duplicate key 'optimizer.lr' (optimizer.lr stands in line 2 already)",
        "; remove one"},
       {dotted + nested, "deck.yaml:3:13: duplicate key 'lr' (optimizer.lr stands in line 2 already)", "; remove one"},
       {"precision: {loss_scale.window: 5, loss_scale: {window: 6}}",
        "deck.yaml:2:48: duplicate key 'window' (precision.loss_scale.window stands in line 2", "; remove one"}},
      "data: {train: x}\n", "\n");
  // The command line is for saying it again.
  CHECK(read_deck("data: {train: x}\n" + nested, "d", {"optimizer.lr=2e-3"}).config.optimizer.lr == 2e-3);
  CHECK(read_deck("data: {train: x}\n" + dotted, "d", {"optimizer={lr: 2e-3}"}).config.optimizer.lr == 2e-3);
}

TEST_CASE("paths that wait for a shell are refused at their place", "[deck]") { // CASES 40
  ::setenv("HOME", "/home/someone", 1);
  check_rows({{"run: {dir: ~/x}", "deck.yaml:2:12: run.dir: '~/x' has ~ in it", "; write /home/someone/x"},
              {"run: {dir: $HOME/x}", "deck.yaml:2:12: run.dir: ", "; write /home/someone/x"},
              {"data.validation: ~/v", "deck.yaml:2:18: data.validation: ", "; write /home/someone/v"}},
             "data: {train: x}\n", "\n");
  CHECK(faults_of("data: {train: ~/x}\n").size() == 1);
  CHECK(faults_of("data: {train: x}\nrun: {dir: ./~}\n").empty());
}
