// kozero bench as its users call it: every benchmark runs, and what it says holds together.
#include "app/cli.hpp"

#include "support/catch.hpp"

#include <cmath>

using namespace kozero::test;

namespace {

constexpr char const* odd = KOZERO_SOURCE_DIR "/inputs/tests/odd.yaml";

std::vector<std::string> bench(std::string const& what, std::vector<std::string> const& more = {}) {
  std::vector<std::string> arguments = {KOZERO_BINARY, "bench", what, "--quick"};
  arguments.insert(arguments.end(), more.begin(), more.end());
  return arguments;
}

nlohmann::json json_of(std::vector<std::string> arguments) {
  arguments.emplace_back("--json");
  auto const result = run_program(arguments);
  INFO(result.err);
  REQUIRE(result.status == 0);
  return nlohmann::json::parse(result.out);
}

double number(nlohmann::json const& object, char const* key) { return object.at(key).get<double>(); }

void check_close(double a, double b) { CHECK(std::abs(a - b) <= 1e-9 * std::abs(b)); }

} // namespace

TEST_CASE("bench gemm has the products of a deck's model, in three passes, and rates that follow from times") {
  auto const json = json_of(bench("gemm", {"--deck", odd, "precision.compute=fp32"}));
  CHECK(json.at("benchmark") == "gemm");
  CHECK(json.at("ranks") == 1);
  CHECK(json.at("rows").size() == 3 * 5);
  for (auto const& row : json.at("rows")) {
    double const operations = 2 * number(row, "m") * number(row, "n") * number(row, "k");
    check_close(number(row, "flops_per_s") * number(row, "seconds"), operations);
    CHECK(number(row, "limit_flops_per_s") > 0);
    CHECK(number(row, "share") > 0);
  }
  CHECK(number(json, "flops_per_s") > 0);

  auto const text = run_program(bench("gemm", {"--deck", odd}));
  CHECK(text.status == 0);
  CHECK(contains(text.out, {"Matrix products", "qkv", "weight gradient", "FLOP/s", "peak"}));
}

TEST_CASE("bench attention has a row a pass, beside a product") {
  auto const json = json_of(bench("attention", {"--deck", odd}));
  REQUIRE(json.at("rows").size() == 2);
  double const forward = number(json.at("rows")[0], "flops_per_s") * number(json.at("rows")[0], "seconds");
  double const backward = number(json.at("rows")[1], "flops_per_s") * number(json.at("rows")[1], "seconds");
  check_close(backward, 2.5 * forward);
}

TEST_CASE("bench link has copies of two sizes in all ways, and the memory's speed") {
  auto const json = json_of(bench("link"));
  REQUIRE(json.at("rows").size() == 2 * 5);
  for (char const* table : {"rows", "memory"}) {
    CHECK(!json.at(table).empty());
    for (auto const& row : json.at(table)) {
      check_close(number(row, "bytes_per_s") * number(row, "seconds"), number(row, "bytes"));
    }
  }
}

TEST_CASE("bench exchange has all collectives of all sizes of blocks, and is for several ranks") {
  auto const json = json_of(on_ranks(3, bench("exchange", {"--deck", odd, "precision.compute=bf16"})));
  CHECK(json.at("ranks") == 3);
  CHECK(json.at("rows").size() == 3 * 3); // embedding, layer, head
  for (auto const& row : json.at("rows")) {
    check_close(number(row, "bytes_per_s") * number(row, "seconds"), number(row, "bytes"));
    double const block = number(row, "elements") * (row.at("collective") == "all_gather" ? 2 : 4);
    double const times = row.at("collective") == "all_reduce" ? 2 : 1;
    CHECK(std::abs(number(row, "bytes") - times * block * 2 / 3) <= times);
  }
  auto const alone = run_program(bench("exchange"));
  CHECK(alone.status == 2);
  CHECK(contains(alone.err, {"one rank exchanges nothing", "mpiexec"}));
}

TEST_CASE("bench adam prints a table, or JSON, with a row for each kind of step") {
  auto const table = run_program(bench("adam", {"--params", "20k"}));
  CHECK(table.status == 0);
  CHECK(contains(table.out, {"20000 parameters", "ns/parameter", "GB/s", "share", "\nbf16 ", "\nfp32 "}));

  auto const json = run_program(bench("adam", {"--params", "20k", "--json"}), {{"OMP_NUM_THREADS", "2"}});
  CHECK(json.status == 0);
  auto const object = nlohmann::json::parse(json.out);
  CHECK(object.at("parameters") == 20000);
  CHECK(!object.at("isa").get<std::string>().empty());
  std::size_t const threads = object.at("threads");
  REQUIRE(object.at("rows").size() == (threads > 1 ? 6 : 3));
  for (auto const& row : object.at("rows")) {
    check_close(number(row, "gb_per_s") * number(row, "ns_per_parameter"), number(row, "bytes_per_parameter"));
    CHECK(number(row, "share") > 0);
    CHECK(row.at("memory") == "host");
    CHECK(!row.contains("cold_ratio"));
  }
  CHECK(object.at("rows").at(0).at("compute") == "bf16");
  CHECK(object.at("rows").back().at("compute") == "fp32");
  CHECK(object.at("rows").back().at("bytes_per_parameter") == 28);
  CHECK(json_of(on_ranks(2, bench("adam", {"--params", "20k"}))).at("ranks") == 2);
}

TEST_CASE("bench adam --cold prints warm beside cold, and their ratio") {
  std::vector<std::string> const command = bench("adam", {"--params", "20k", "--cold"});
  auto const table = run_program(command);
  CHECK(table.status == 0);
  CHECK(contains(table.out, {"share", "warm ns/parameter", "cold ns/parameter", "ratio"}));
  for (auto const& row : json_of(command).at("rows")) {
    for (char const* key : {"warm_ns_per_parameter", "cold_ns_per_parameter", "cold_ratio"})
      CHECK(number(row, key) > 0);
  }
}

TEST_CASE("bench step: the parts of an update add up to it, and the rates follow from its time") {
  Workshop const shop;
  for (int const ranks : {1, 2}) {
    for (auto const& more : std::vector<std::vector<std::string>>{
             {"zero.stage=3", "precision.compute=bf16", "activations.recompute=unit"},
             {"zero.stage=2", "offload.optimizer=host", "offload.delayed_update.start=5"}}) {
      CAPTURE(ranks, more);
      auto arguments = shop.train("run", {"batch.global=none", "batch.accumulate=2", "--quick", "--updates=2"});
      arguments[1] = "step";
      arguments.insert(arguments.begin() + 1, "bench");
      arguments.insert(arguments.end(), more.begin(), more.end());
      auto const json = json_of(ranks == 1 ? arguments : on_ranks(ranks, arguments));
      double sum = 0;
      REQUIRE(json.at("time").size() == 5);
      for (auto const& part : json.at("time")) {
        sum += number(part, "seconds");
        CHECK(number(part, "seconds") >= 0);
        CHECK(number(part, "busy_seconds") >= number(part, "seconds") * (1 - 1e-9));
      }
      check_close(sum, number(json, "profiled_update_s"));
      bool const offloads = more.size() == 3 && more[1] == "offload.optimizer=host";
      CHECK((number(json.at("time")[1], "seconds") > 0)); // tokens are the host's work
      if (offloads) CHECK(number(json.at("time")[2], "seconds") > 0);
      double const tokens = number(json, "batch_tokens");
      CHECK(tokens == 2 * 2 * 33 * ranks);
      check_close(number(json, "tokens_per_s") * number(json, "update_s"), tokens);
      check_close(number(json, "flops_per_s") * ranks, number(json, "tokens_per_s") * number(json, "flops_per_token"));
      CHECK(number(json, "hardware_flops_per_s") >= number(json, "flops_per_s"));
      CHECK(number(json, "share_of_products") > 0);
      CHECK(json.at("warnings").empty());
    }
  }
  CHECK(!std::filesystem::exists(shop.file("run")));
}

TEST_CASE("bench says what is wrong with its arguments") {
  auto const refused = [](std::vector<std::string> const& arguments, std::vector<std::string> const& parts) {
    auto const result = run_program(arguments);
    INFO(result.err);
    CHECK(result.status == 2);
    CHECK(result.out.empty());
    CHECK(contains(result.err, parts));
  };
  refused(bench("gemm", {"--deck", "nowhere.yaml"}), {"nowhere.yaml"});
  refused(bench("gemm", {"model.widht=4"}), {"widht"});
  refused(bench("attention", {"model.size=unheard"}), {"unheard"});
  refused(bench("step"), {"deck"});
  refused(bench("step", {odd, "--updates", "0"}), {"--updates"});
  refused(bench("step", {odd, "data.train=nowhere"}), {"nowhere"});
  refused(bench("link", {"odd.yaml"}), {"odd.yaml"});
}

TEST_CASE("bench adam refuses what is no number of parameters, and more than memory holds") {
  for (auto const& [text, part] : std::vector<std::pair<std::string, std::string>>{{"many", "'many'"},
                                                                                   {"1.5", "'1.5'"},
                                                                                   {"0", "nothing to measure"},
                                                                                   {"-3", "nothing to measure"},
                                                                                   {"9000000G", "available"},
                                                                                   {"100000G", "available"}}) {
    auto const refused = run_program(bench("adam", {"--params=" + text}));
    INFO(refused.err);
    CHECK(refused.status == 2);
    CHECK(refused.out.empty());
    CHECK(contains(refused.err, {"--params", part}));
  }
}
