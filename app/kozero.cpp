// kozero train | check | plan | generate | checkpoint | selftest | bench: trains GPTs with ZeRO on Kokkos and MPI. See
// doc/ and `kozero --help`.

#include "app/commands.hpp"
#include "app/version_text.hpp"

#include "core/error.hpp"
#include "core/log.hpp"
#include "core/runtime.hpp"
#include "core/signal_listener.hpp"
#include "io/standard_streams.hpp"
#include "model/families.hpp"

#include <CLI/CLI.hpp>

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <functional>
#include <optional>
#include <string>
#include <system_error>
#include <vector>

namespace kozero {

namespace {

/// CLI11's own check tells the largest double in digits.
CLI::Validator not_negative() {
  return {[](std::string& value) { return value.starts_with('-') ? value + " is negative" : std::string(); }, "NUMBER"};
}

/// What the command line asks for: exactly one of the subcommands.
struct CommandLine {
  CLI::App app{"kozero: trains GPT-style transformers with ZeRO data parallelism.\n"
               "In parallel: mpiexec -n 4 kozero train DECK",
               "kozero"};
  TrainArguments train;
  CheckArguments check;
  PlanArguments plan;
  GenerateArguments generate;
  CheckpointArguments checkpoint;
  BenchArguments bench;
  SelftestArguments selftest;
  std::function<int()> run;
  enum class Needs { nothing, one_rank, all_ranks } needs = Needs::one_rank; // nothing: neither MPI nor a device
  enum class Signals { end_it, ask_to_stop } signals = Signals::end_it;      // TERM, INT, USR1 and HUP

  CommandLine() {
    app.set_version_flag("--version", version_text, "Say versions: of kozero, of libraries, of devices");
    app.require_subcommand(1);
    add_train();
    add_check();
    add_plan();
    add_generate();
    add_checkpoint();
    add_bench();
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
        command
            .add_flag("--resume", train.resume,
                      "Go on from the newest checkpoint of the run folder; --resume auto: or start where there is none")
            ->excludes(overwrite)
            ->check(CLI::IsMember({"true", "auto"}));
    command.add_option("--resume-from", train.resume_from, "Go on from this checkpoint")
        ->excludes(resume)
        ->excludes(overwrite);
    command.add_flag_callback(
        "--allow-other-data", [this] { train.other_data = OtherData::allowed; },
        "Go on though the data is not what the checkpoint was trained on");
    command.callback([this] {
      needs = Needs::all_ranks;
      signals = Signals::ask_to_stop;
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
      needs = Needs::nothing;
      run = [this] { return run_check(check); };
    });
  }

  void add_plan() {
    CLI::App& command = *app.add_subcommand("plan", "Say what memory and traffic a deck needs, without training");
    command.add_option("deck", plan.deck, "Input deck (YAML); its data files are not looked at")->required();
    command.add_option("overrides", plan.overrides, "Keys of the deck with other values");
    command.add_option("--ranks", plan.ranks, "Data-parallel ranks; none need be there")
        ->check(CLI::Range(std::int64_t{1}, std::int64_t{1} << 18))
        ->capture_default_str();
    auto* const per_host =
        command.add_option("--ranks-per-host", plan.ranks_per_host, "Tell traffic within hosts from that between them")
            ->check(CLI::Range(std::int64_t{1}, std::int64_t{1} << 18));
    command
        .add_option("--rates", plan.rates,
                    "Predict the time of an update on more and more hosts, as in\n"
                    "flops=4.5e14,within=3e11,between=4.5e10,latency=2e-5: operations a\n"
                    "rank does and bytes it gets a second, and seconds of a collective")
        ->needs(per_host);
    command.add_flag("--json", plan.json, "Print one JSON object, with bytes as integers");
    command.footer("Start it alone, without mpiexec: --ranks says how many.\n");
    command.callback([this] {
      needs = Needs::nothing;
      run = [this] { return run_plan(plan); };
    });
  }

  void add_generate() {
    CLI::App& command = *app.add_subcommand("generate", "Write text with a trained model");
    command.add_option("--checkpoint", generate.checkpoint, "A checkpoint, or a run folder: its newest")->required();
    auto* const prompt = command.add_option("--prompt", generate.prompt, "Text to go on from")->default_val("\n");
    command.add_option("--prompt-tokens", generate.prompt_tokens, "Token ids to go on from, with commas")
        ->delimiter(',')
        ->excludes(prompt);
    command.add_option("--tokens", generate.tokens, "How many to write")->check(not_negative())->capture_default_str();
    command.add_option("--temperature", generate.temperature, "0 is greedy")
        ->check(not_negative())
        ->capture_default_str();
    command.add_option("--top-k", generate.top_k, "Only the k likeliest tokens; 0: all")
        ->check(not_negative())
        ->capture_default_str();
    command.add_option("--seed", generate.seed, "Of the random choices")->capture_default_str();
    command.callback([this] { run = [this] { return run_generate(generate); }; });
  }

  void add_checkpoint() {
    CLI::App& command = *app.add_subcommand("checkpoint", "Look at checkpoints, compare and remove them");
    command.require_subcommand(1);
    auto const add = [&](char const* name, char const* help, int (*work)(CheckpointArguments const&)) {
      CLI::App* const action = command.add_subcommand(name, help);
      action->callback([this, work] {
        needs = Needs::nothing;
        run = [this, work] { return work(checkpoint); };
      });
      return action;
    };
    auto* const ls = add("ls", "List the checkpoints of a run", run_checkpoint_ls);
    ls->add_option("run", checkpoint.path, "A run folder")->required();
    auto* const verify = add("verify", "Read a checkpoint and compare every checksum", run_checkpoint_verify);
    verify->add_option("checkpoint", checkpoint.path, "A checkpoint, or a run folder: its newest")->required();
    verify->footer("Exit status 1 if anything is damaged or missing.\n");
    auto* const diff = add("diff", "Say where two checkpoints differ", run_checkpoint_diff);
    diff->add_option("a", checkpoint.path, "A checkpoint, or a run folder: its newest")->required();
    diff->add_option("b", checkpoint.other, "The other one")->required();
    diff->footer("Compares parameters and optimizer state bit by bit, whatever ranks and stages wrote them.\n"
                 "Exit status 1 if they differ.\n");
    auto* const prune = add("prune", "Remove older checkpoints of a run that does not go on", run_checkpoint_prune);
    prune->add_option("run", checkpoint.path, "A run folder")->required();
    prune->add_option("--keep", checkpoint.keep, "Newest ones that stay")
        ->required()
        ->check(CLI::Range(std::int64_t{1}, std::int64_t{1} << 40));
    prune->add_option("--keep-best", checkpoint.keep_best, "And so many of the least held-out loss")
        ->check(CLI::NonNegativeNumber)
        ->capture_default_str();
    prune->add_flag("--dry-run", checkpoint.dry_run, "Say what would be removed, and remove nothing");
    prune->add_flag("--no-run-is-on", checkpoint.no_run_is_on, "Go on where the file system has no locks to tell that");
  }

  void add_bench() {
    CLI::App& command =
        *app.add_subcommand("bench", "Measure what parts of the program and whole updates reach on this machine");
    command.require_subcommand(1);
    command.footer("Several ranks measure at the same time; figures are those of the slowest.\n");
    auto const add = [&](char const* name, char const* help, int (*work)(BenchArguments const&)) {
      CLI::App* const action = command.add_subcommand(name, help);
      action->add_flag("--quick", bench.quick, "Few and short rounds, to see that it runs");
      action->add_flag("--json", bench.json, "Print one JSON object instead of a table");
      action->callback([this, work] {
        needs = Needs::all_ranks;
        run = [this, work] { return work(bench); };
      });
      return action;
    };
    auto const add_with_shapes = [&](char const* name, char const* help, int (*work)(BenchArguments const&)) {
      CLI::App* const action = add(name, help, work);
      action->add_option("--deck", bench.deck, "Input deck (YAML) whose shapes and types count; its data is not read");
      action->add_option("overrides", bench.overrides, "Keys of the deck with other values: batch.micro=4");
    };
    add_with_shapes("gemm", "The matrix products of a model, beside the peak of the device", run_bench_gemm);
    add_with_shapes("attention", "Attention, beside a matrix product of the model", run_bench_attention);
    add_with_shapes("exchange", "Collectives of a model's blocks, beside copies", run_bench_exchange);
    add("link", "Copies between device and host, and the speed of memory", run_bench_link);
    auto* const adam = add("adam", "The optimizer's step, beside the speed of memory", run_bench_adam);
    adam->add_option("--params", bench.params, "Parameters to update, with k, M or G")->capture_default_str();
    adam->add_flag("--cold", bench.cold, "Measure rows that get no gradient too, beside rows that do");
    auto* const step = add("step", "Updates of a deck, beside the matrix products of its shapes", run_bench_step);
    step->add_option("deck", bench.deck, "Input deck (YAML)")->required();
    step->add_option("overrides", bench.overrides, "Keys of the deck with other values");
    step->add_option("--updates", bench.updates, "Of a round; there are four, and two updates before them")
        ->check(CLI::Range(1, 10000))
        ->capture_default_str();
    step->footer("Trains on the deck's data; writes nothing, and does not touch run.dir.\n");
  }

  void add_selftest() {
    CLI::App& command = *app.add_subcommand(
        "selftest", "Train a few updates in every combination of stage, offload and delayed update, and compare");
    command.add_option("deck", selftest.deck, "Input deck (YAML)")->required();
    command.add_option("overrides", selftest.overrides, "Keys of the deck with other values");
    command.add_option("--updates", selftest.updates, "Of each run; a delay shows from the third on")
        ->check(CLI::Range(3, 10000))
        ->capture_default_str();
    command.footer(
        "Uses the deck's model, data, batch and precision; writes nothing, and does not touch run.dir.\n"
        "Make a large deck smaller: kozero selftest DECK batch.global=none batch.accumulate=2 batch.micro=1\n"
        "                           model.layers=2 model.context=128\n"
        "Exit status 1 if anything differs that should be equal.\n");
    command.callback([this] {
      needs = Needs::all_ranks;
      run = [this] { return run_selftest(selftest); };
    });
  }
};

/// The command line's words for CLI11, last first. An option whose value may be left out takes whatever follows, a deck
/// too, so `--resume auto` is made one word.
std::vector<std::string> words_of(int argc, char** argv) {
  std::vector<std::string> words;
  for (int i = argc - 1; i > 0; --i) {
    std::string const word = argv[i];
    bool const joins = word == "--resume" && !words.empty() && words.back() == "auto";
    if (joins) words.back() = "--resume=auto";
    if (!joins) words.push_back(word);
  }
  return words;
}

int exit_code_of(std::exception const& failure) {
  auto const* const error = dynamic_cast<Error const*>(&failure);
  return error ? error->exit_code() : static_cast<int>(exit_failed);
}

/// One message for an error; other ranks must not wait for a rank that left alone.
int report(Runtime const& runtime, std::exception const& failure) {
  bool const shared = dynamic_cast<SharedError const*>(&failure) != nullptr;
  int const exit_code = exit_code_of(failure);
  if (shared || runtime.ranks() == 1) {
    if (runtime.rank() == 0) log::error("kozero: {}", failure.what());
    return exit_code;
  }
  log::error("kozero: rank {}: {}", runtime.rank(), failure.what());
  Runtime::abort(exit_code);
}

/// Runs the command. Results that could not be written are none.
int run_command(CommandLine const& command_line) {
  auto const require_written = [] {
    KOZERO_REQUIRE(std::fflush(stdout) == 0 && std::ferror(stdout) == 0,
                   "results could not be written to standard output ({}); free space there, or mend what reads them",
                   std::strerror(errno));
  };
  try {
    int const status = command_line.run();
    require_written();
    return status;
  } catch (std::system_error const&) { // fmt's, of what it prints
    require_written();
    throw;
  }
}

int run_without_runtime(CommandLine const& command_line) {
  log::start(log::Voice::speaks);
  try {
    return run_command(command_line);
  } catch (std::exception const& failure) {
    log::error("kozero: {}", failure.what());
    return exit_code_of(failure);
  }
}

int run_program(int argc, char** argv) {
  keep_standard_streams();
  register_model_families();
  CommandLine command_line;
  try {
    command_line.app.parse(words_of(argc, argv));
  } catch (CLI::ParseError const& error) {
    return command_line.app.exit(error) == 0 ? exit_done : exit_bad_input;
  }
  restore_hup();
  std::signal(SIGXFSZ, SIG_IGN); // a file too large for the user's limits is an error like a full disk, not the end
  std::signal(SIGPIPE, SIG_IGN); // and a reader that is gone is one like it
  if (command_line.needs == CommandLine::Needs::nothing) return run_without_runtime(command_line);
  std::optional<SignalListener> listener; // outlives the runtime: what MPI and Kokkos start inherits what is blocked
  if (command_line.signals == CommandLine::Signals::ask_to_stop) listener.emplace();
  Runtime runtime(argc, argv);
  restore_hup(); // MPI may have loaded more libraries
  log::start(runtime.rank() == 0 ? log::Voice::speaks : log::Voice::silent);
  try {
    if (runtime.rank() != 0 && command_line.needs != CommandLine::Needs::all_ranks) return exit_done;
    return run_command(command_line);
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
