#include "app/commands.hpp"

#include "app/job.hpp"
#include "comm/agree.hpp"
#include "comm/planned.hpp"
#include "comm/process_grid.hpp"
#include "comm/slurm_job.hpp"
#include "comm/survey.hpp"
#include "comm/transport.hpp"
#include "comm/watch/rank_watch.hpp"
#include "config/compare.hpp"
#include "core/format.hpp"
#include "core/log.hpp"
#include "io/deck.hpp"
#include "io/disk_space.hpp"
#include "io/resume_data.hpp"
#include "io/run_folder.hpp"
#include "optim/schedule.hpp"
#include "plan/disk_plan.hpp"
#include "plan/rank_plan.hpp"
#include "plan/start_table.hpp"
#include "plan/usage_table.hpp"
#include "train/trainer.hpp"

#include <fmt/ranges.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <filesystem>
#include <memory>

namespace kozero {

namespace {

namespace fs = std::filesystem;

bool resumes(TrainArguments const& arguments) { return !arguments.resume.empty() || !arguments.resume_from.empty(); }

/// The run's folder, rank 0's alone; one that holds a run already is not written over by accident.
std::shared_ptr<RunFolder> hold_folder(Config const& config, TrainArguments const& arguments, Ranks& ranks) {
  return on_first_rank(ranks, [&] {
    // One that goes on may come from a node that was lost, whose lock lives as long as the file server's lease.
    auto const patience = resumes(arguments) ? std::chrono::minutes(3) : std::chrono::minutes(0);
    auto folder = std::make_shared<RunFolder>(config.run.dir, patience);
    if (folder->holds_checkpoints() && !resumes(arguments) && !arguments.overwrite) {
      throw InputError(fmt::format("run folder '{}' holds a run already (it has checkpoints); go on with --resume, or "
                                   "start anew with --overwrite or another run.dir",
                                   folder->path()));
    }
    return folder;
  });
}

/// Its path, as rank 0 sees it.
fs::path path_of(std::shared_ptr<RunFolder> const& folder, Ranks& ranks) {
  std::string path = folder ? folder->path() : "";
  ranks.broadcast(path, 0);
  return path;
}

/// Where the schedule makes a jump: a run that is made longer has come down to a low rate, and goes on with a high one.
void tell_of_rate(Config const& before, Config const& now, Counters const& counters) {
  auto const rate_of_next = [&](Config const& config) {
    return learning_rate(config.optimizer, config.schedule, config.run.updates, counters.updates_applied);
  };
  double const was = rate_of_next(before);
  double const is = rate_of_next(now);
  if (std::abs(is - was) <= 0.01 * std::max(is, was)) return;
  log::warn("resume: the learning rate of update {} is {:.3g}, and was {:.3g} by the checkpoint's deck (peak {:.3g}, "
            "was {:.3g})",
            counters.updates_applied + 1, is, was, now.optimizer.lr, before.optimizer.lr);
}

/// What the deck says otherwise than the checkpoint's. Throws where a key must not differ.
void compare_with_deck(fs::path const& checkpoint, CheckpointInfo const& info, Config const& config,
                       std::vector<std::string> const& same_files) {
  StoredDeck const stored = read_stored_deck(info.deck, info.format_version);
  for (auto const& note : stored.notes) log::info("resume: {} (not compared)", note);
  std::string forbidden;
  for (auto const& difference : compare_decks(stored.config, config)) {
    if (stored.unread.contains(difference.key)) continue;
    auto const line = fmt::format("{}: {} -> {}", difference.key, difference.before, difference.now);
    if (difference.severity == Severity::forbidden) forbidden += "\n  " + line;
    bool const is_same_file = std::ranges::count(same_files, difference.key) > 0;
    log::info("resume: {} ({})", line, is_same_file ? "harmless: the same data" : name_of(difference.severity));
  }
  if (!forbidden.empty()) {
    throw InputError(fmt::format("checkpoint '{}' is of another run (these keys must stay as they were); change them "
                                 "back or start a new run:{}",
                                 checkpoint.string(), forbidden));
  }
  if (stored.unread.empty()) tell_of_rate(stored.config, config, info.counters);
}

void compare_with_data(fs::path const& checkpoint, ResumedData const& data, OtherData other_data) {
  if (!data.known) log::info("resume: the checkpoint does not say what data it was trained on (not compared)");
  for (auto const& line : data.other) log::info("resume: {}", line);
  if (data.other.empty() || other_data == OtherData::allowed) return;
  throw InputError(
      fmt::format("checkpoint '{}' was trained on other data ({}); put the file back, or go on with what is "
                  "there by --allow-other-data",
                  checkpoint.string(), fmt::join(data.other, "; ")));
}

/// The checkpoint to go on from, after a comparison of what it was made with and what there is now.
fs::path check_checkpoint(fs::path const& wanted, Job const& job, OtherData other_data) {
  fs::path const path = fs::absolute(resolve_checkpoint(wanted));
  CheckpointReader const reader(path);
  auto const& info = reader.info();
  ResumedData const data = compare_data(info, job.corpus);
  compare_with_deck(path, info, job.deck.config, data.same);
  if (info.global_batch != job.batch.global()) {
    throw InputError(
        fmt::format("checkpoint '{}' was made with batches of {} windows and this run has {} (the place in "
                    "the data is counted in batches); set batch.global: {}",
                    path.string(), info.global_batch, job.batch.global(), info.global_batch));
  }
  compare_with_data(path, data, other_data);
  return path;
}

/// The checkpoint that the arguments mean, if any. Rank 0 finds it, as ranks may have different working folders.
std::optional<fs::path> find_checkpoint(TrainArguments const& arguments, RunFolder const* folder, Job const& job,
                                        Ranks& ranks) {
  std::string path = on_first_rank(ranks, [&] {
    bool const wants_any = arguments.resume == "auto";
    if (wants_any && !folder->holds_checkpoints()) return std::string();
    fs::path const wanted = arguments.resume_from.empty() ? folder->path() : arguments.resume_from;
    return check_checkpoint(wanted, job, arguments.other_data).string();
  });
  ranks.broadcast(path, 0);
  return path.empty() ? std::nullopt : std::optional<fs::path>(path);
}

/// Rank 0's: says before the first update that the disk will not hold the checkpoints that are to come.
void look_at_room(Config const& config, fs::path const& folder) try {
  std::int64_t const bytes = planned_disk_bytes(config, count_checkpoints(folder));
  auto const free = free_disk_bytes(folder);
  if (!free || *free >= bytes) return;
  log::warn(
      "the disk of '{}' has {} left, and the run's checkpoints will take {} (checkpoint.keep is {}, keep_best {}); "
      "make room, keep fewer or set run.dir to another disk",
      folder.string(), format_bytes(*free), format_bytes(bytes), config.checkpoint.keep, config.checkpoint.keep_best);
} catch (std::exception const& error) { // the other ranks go on
  log::warn("how much room the run's checkpoints have is not known: {}", error.what());
}

/// Of rank 0, with the transport that is there.
RankPlan plan_of(Config config, BatchShape const& batch, TransportChoice const& exchange) {
  config.parallel.transport = exchange.transport;
  return plan_rank(config, batch, 0, planned_way(exchange.transport, exchange.hosts));
}

/// What was predicted beside what was measured, and how the run ended.
void tell(RunOutcome const& outcome, RankPlan const& plan, Ledger const& ledger) {
  for (auto const& line : usage_table(plan, ledger, outcome.moved)) log::info("{}", line);
  if (outcome.end == RunEnd::done) {
    log::info("{}", outcome.summary);
  } else {
    log::warn("{}", outcome.summary);
  }
}

int train_by(Deck const& read, TrainArguments const& arguments, Ranks& ranks, Ledger& ledger) {
  Job const job = open_job(read, ranks, ledger);
  auto const& [deck, batch, corpus] = job;
  Config const& config = deck.config;
  TransportChoice const exchange = choose_transport(ranks, config.parallel);
  Surroundings const here{survey(ranks), ranks.description(), exchange.text, slurm_job()};
  print(start_table(config, corpus, batch, here));
  for (auto const& warning : deck.warnings) log::warn("warning: {}", warning);
  if (arguments.dry_run) {
    log::info("dry run: the deck, the data and the machine are as they should be; nothing was trained or written");
    return exit_done;
  }

  auto const folder = hold_folder(config, arguments, ranks);
  RunInput input{.config = config,
                 .resolved_deck = deck.resolved_yaml,
                 .corpus = corpus,
                 .batch = batch,
                 .folder = path_of(folder, ranks),
                 .held_folder = folder,
                 .resume = std::nullopt,
                 .overwrite = arguments.overwrite,
                 .job_end = job_end()};
  if (resumes(arguments)) input.resume = find_checkpoint(arguments, folder.get(), job, ranks);
  if (ranks.rank() == 0) look_at_room(config, input.folder);
  ProcessGrid const grid(ranks, config.parallel, ledger);
  RunOutcome const outcome = train(input, grid.state(), ledger);
  if (ranks.rank() == 0) tell(outcome, plan_of(config, batch, exchange), ledger);
  return outcome.end == RunEnd::done ? exit_done : exit_stopped_early;
}

} // namespace

int run_train(TrainArguments const& arguments) {
  Ledger ledger;
  auto const ranks = make_world_ranks();
  Deck const deck = read_deck_of_job(arguments.deck, arguments.overrides, *ranks);
  RankWatch watch(*ranks, deck.config.run.stall_limit_s);
  return watch.over([&] { return train_by(deck, arguments, *ranks, ledger); });
}

} // namespace kozero
