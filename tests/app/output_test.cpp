// What a run says, and that nobody need listen.
#include "app/cli.hpp"

#include "support/catch.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <regex>

using namespace kozero::test;

namespace {

/// A shell that runs the command as "$@" within `script`.
std::vector<std::string> in_shell(std::string const& script, std::vector<std::string> const& command) {
  std::vector<std::string> all = {"bash", "-c", script, "bash"};
  all.insert(all.end(), command.begin(), command.end());
  return all;
}

std::vector<std::string> lines_with(std::string const& text, std::string const& expression) {
  std::vector<std::string> lines;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) {
    if (std::regex_search(line, std::regex(expression))) lines.push_back(line);
  }
  return lines;
}

} // namespace

TEST_CASE("a log has a plain line every run.log_every updates") { // CASES 53
  Workshop const shop;
  auto const run = run_program(shop.train("run", {"run.updates=23", "run.log_every=5"}));
  INFO(run.err);
  REQUIRE(run.status == 0);
  auto const lines =
      lines_with(run.err, R"(^update +[0-9]+/23 +loss [0-9.]+ +norm [0-9.e+-]+ +lr [0-9.e+-]+ +)"
                          R"([0-9.]+[kM]? tokens/s +[0-9.]+ [KMG]?i?B \+ [0-9.]+ [KMG]?i?B host +[0-9a-z. ]+ left$)");
  REQUIRE(lines.size() == 4);
  for (std::size_t i = 0; i < lines.size(); ++i) {
    CHECK(contains(lines[i], {fmt::format(" {}/23 ", 5 * (i + 1))}));
  }
  auto const silent = run_program(shop.train("silent", {"run.updates=23", "run.log_every=0"}));
  CHECK(lines_with(silent.err, "tokens/s").empty());
}

TEST_CASE("lost output does not end a run") { // CASES 29
  Workshop const shop;
  REQUIRE(run_program(shop.train("whole", {"run.updates=200"})).status == 0);
  struct Row {
    char const* name;
    char const* script;
  };
  for (Row const row : {Row{"closed", R"("$@" 2>&-)"}, Row{"full", R"("$@" 2>/dev/full)"},
                        Row{"gone", R"("$@" 2> >(head -1 >/dev/null))"}}) {
    for (char const* progress : {"0", "1"}) {
      INFO(row.name << ", progress line " << progress);
      std::string const name = std::string(row.name) + progress;
      auto const run =
          run_program(in_shell(row.script, shop.train(name, {"run.updates=200"})), {{"KOZERO_PROGRESS", progress}});
      CHECK(run.status == 0);
      CHECK(shop.hash(name) == shop.hash("whole"));
      auto const metrics = shop.metrics(name);
      auto const notes =
          std::ranges::count_if(metrics, [](auto const& line) { return line.value("event", "") == "note"; });
      CHECK(notes == 1);
    }
  }
}

TEST_CASE("results that cannot be written are an error") { // CASES 44
  Workshop const shop;
  REQUIRE(run_program(shop.train("run")).status == 0);
  std::vector<std::string> const odd = {KOZERO_BINARY, "plan", KOZERO_SOURCE_DIR "/inputs/tests/odd.yaml"};
  std::vector<std::string> const text = {KOZERO_BINARY, "generate", "--checkpoint", shop.file("run")};
  std::vector<std::string> const deck = {KOZERO_BINARY, "check", "--reference"};
  for (auto const& command : {odd, text, deck}) {
    auto const full = run_program(in_shell(R"("$@" >/dev/full)", command));
    INFO(command[1] << ": " << full.err);
    CHECK(full.status == 1);
    CHECK(contains(full.err, {"standard output"}));
    CHECK(run_program(in_shell(R"("$@" > >(:); sleep 0.2; "$@" > >(exit 0))", command)).status <= 1); // no signal
  }
}

TEST_CASE("--resume auto starts a run or goes on with it") { // CASES 52
  Workshop const shop;
  auto const first = run_program(shop.train("run", {"run.updates=6", "--resume", "auto"}));
  INFO(first.err);
  REQUIRE(first.status == 0);
  auto const second = run_program(shop.train("run", {"--resume", "auto", "run.updates=6"}));
  INFO(second.err);
  CHECK(second.status == 0);
  CHECK(shop.metrics("run").size() == 7);
  CHECK(run_program(shop.train("other", {"--resume=auto", "run.updates=6"})).status == 0);
  CHECK(run_program(shop.train("other", {"--resume", "run.updates=6"})).status == 0);
  CHECK(run_program(shop.train("other", {"--resume=always"})).status == 2);
}
