// kozero train | check | generate | selftest: trains GPTs with ZeRO on Kokkos and MPI. See doc/ and `kozero --help`.

#include "app/commands.hpp"

#include "core/error.hpp"
#include "core/log.hpp"
#include "core/runtime.hpp"
#include "train/version.hpp"

#include <CLI/CLI.hpp>

#include <csignal>
#include <cstdio>
#include <functional>

namespace kozero {

namespace {

/// What the command line asks for: exactly one of the subcommands.
struct CommandLine {
  CLI::App app{"kozero: trains GPT-style transformers with ZeRO data parallelism.\n"
               "In parallel: mpiexec -n 4 kozero train DECK"};
  TrainArguments train;
  CheckArguments check;
  GenerateArguments generate;
  SelftestArguments selftest;
  std::function<int()> run;
  bool needs_all_ranks = false;

  CommandLine() {
    app.set_version_flag("--version", version());
    app.require_subcommand(1);
    add_train();
    add_check();
    add_generate();
    add_selftest();
  }

private:
  void add_train() {
    CLI::App& command = *app.add_subcommand("train", "Train the model that a deck describes");
    command.add_option("deck", train.deck, "Input deck (YAML)")->required();
    command.add_option("overrides", train.overrides, "Keys of the deck with other values: optimizer.lr=1e-4");
    command.add_flag("--dry-run", train.dry_run, "Read deck and data, print the table, and stop");
    auto* const overwrite =
        command.add_flag("--overwrite", train.overwrite, "Start anew in a folder that holds a run already");
    auto* const resume =
        command.add_flag("--resume", train.resume, "Go on from the newest checkpoint of the run folder")
            ->excludes(overwrite);
    command.add_option("--resume-from", train.resume_from, "Go on from this checkpoint")
        ->excludes(resume)
        ->excludes(overwrite);
    command.callback([this] {
      needs_all_ranks = true;
      run = [this] { return run_train(train); };
    });
  }

  void add_check() {
    CLI::App& command = *app.add_subcommand("check", "Check a deck and print it with all defaults");
    auto* const deck = command.add_option("deck", check.deck, "Input deck (YAML)");
    command.add_option("overrides", check.overrides, "Keys of the deck with other values");
    auto* const reference = command.add_flag("--reference", check.reference, "Print the reference of all keys instead");
    command.callback([this, deck, reference] {
      if (deck->empty() && reference->empty()) throw CLI::RequiredError("deck");
      run = [this] { return run_check(check); };
    });
  }

  void add_generate() {
    CLI::App& command = *app.add_subcommand("generate", "Write text with a trained model");
    command.add_option("--checkpoint", generate.checkpoint, "A checkpoint, or a run folder: its newest")->required();
    auto* const prompt = command.add_option("--prompt", generate.prompt, "Text to go on from")->default_val("\n");
    command.add_option("--prompt-tokens", generate.prompt_tokens, "Token ids to go on from, with commas")
        ->delimiter(',')
        ->excludes(prompt);
    command.add_option("--tokens", generate.tokens, "How many to write")
        ->check(CLI::NonNegativeNumber)
        ->capture_default_str();
    command.add_option("--temperature", generate.temperature, "0 is greedy")
        ->check(CLI::NonNegativeNumber)
        ->capture_default_str();
    command.add_option("--top-k", generate.top_k, "Only the k likeliest tokens; 0: all")
        ->check(CLI::NonNegativeNumber)
        ->capture_default_str();
    command.add_option("--seed", generate.seed, "Of the random choices")->capture_default_str();
    command.callback([this] { run = [this] { return run_generate(generate); }; });
  }

  void add_selftest() {
    CLI::App& command = *app.add_subcommand(
        "selftest", "Train a few updates in every combination of stage, offload and delayed update, and compare");
    command.add_option("deck", selftest.deck, "Input deck (YAML)")->required();
    command.add_option("overrides", selftest.overrides, "Keys of the deck with other values");
    command.add_option("--updates", selftest.updates, "Of each run; a delay shows from the third on")
        ->check(CLI::Range(3, 10000))
        ->capture_default_str();
    command.footer("Uses the deck's model, data, batch and precision; writes nothing, and does not touch run.dir.\n"
                   "Make a large deck smaller: kozero selftest DECK batch.micro=1 model.layers=2 model.context=128\n"
                   "Exit status 1 if anything differs that should be equal.\n");
    command.callback([this] {
      needs_all_ranks = true;
      run = [this] { return run_selftest(selftest); };
    });
  }
};

/// One message for an error; other ranks must not wait for a rank that left alone.
int report(Runtime const& runtime, std::exception const& failure) {
  auto const* const error = dynamic_cast<Error const*>(&failure);
  bool const shared = dynamic_cast<SharedError const*>(&failure) != nullptr;
  int const exit_code = error ? error->exit_code() : static_cast<int>(exit_failed);
  if (shared || runtime.ranks() == 1) {
    if (runtime.rank() == 0) log::error("kozero: {}", failure.what());
    return exit_code;
  }
  log::error("kozero: rank {}: {}", runtime.rank(), failure.what());
  Runtime::abort(exit_code);
}

int run_program(int argc, char** argv) {
  CommandLine command_line;
  try {
    command_line.app.parse(argc, argv);
  } catch (CLI::ParseError const& error) {
    return command_line.app.exit(error) == 0 ? exit_done : exit_bad_input;
  }
  std::signal(SIGXFSZ, SIG_IGN); // a file too large for the user's limits is an error like a full disk, not the end
  Runtime runtime(argc, argv);
  log::start(runtime.rank() == 0 ? log::Voice::speaks : log::Voice::silent);
  try {
    if (runtime.rank() != 0 && !command_line.needs_all_ranks) return exit_done;
    return command_line.run();
  } catch (std::exception const& error) {
    return report(runtime, error);
  }
}

} // namespace

} // namespace kozero

int main(int argc, char** argv) {
  try {
    return kozero::run_program(argc, argv);
  } catch (std::exception const& error) { // MPI or Kokkos did not come up
    std::fprintf(stderr, "kozero: %s\n", error.what());
    return kozero::exit_failed;
  }
}
