#include "train/saver.hpp"

#include "core/format.hpp"
#include "core/log.hpp"

namespace kozero {

namespace {

double seconds_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

} // namespace

void Saver::note_resumed(std::string const& hash, Newest newest) {
  hash_ = hash;
  if (newest == Newest::yes) saved_at_ = run_.training.counters().batches_seen;
}

std::span<std::int64_t> Saver::joined() {
  auto const& seconds = run_.options.every.seconds;
  sums_[time_up] = seconds && run_.group.rank() == 0 && seconds_since(began_) >= *seconds;
  sums_[wrote] = in_background_ && in_background_->is_written();
  if (!seconds && !run_.options.in_background) return {};
  return sums_;
}

void Saver::after_batch() {
  if (sums_[wrote] == run_.group.size()) finish(Failed::by_deck);
}

void Saver::save() {
  finish(Failed::by_deck); // two are never under way
  auto const folder = begin();
  if (is_saved(folder)) return;
  if (run_.options.in_background) {
    save_in_background(folder);
  } else {
    save_now(Failed::by_deck);
  }
}

void Saver::save_last() {
  finish(Failed::is_told);
  auto const folder = begin();
  if (!is_saved(folder)) return save_now(Failed::ends_run);
  if (run_.group.rank() == 0) remove_leftovers(folder / "checkpoints");
}

std::filesystem::path Saver::begin() {
  began_ = std::chrono::steady_clock::now();
  run_.training.settle();
  return run_.find_folder();
}

/// Whether the folder has a checkpoint of this state; it may have been removed. Collective.
bool Saver::is_saved(std::filesystem::path const& folder) const {
  Counters const& counters = run_.training.counters();
  return saved_at_ == counters.batches_seen &&
         is_latest_checkpoint(checkpoint_path(folder, counters.updates_applied), folder, run_.group.ranks);
}

/// Ranks whose copies of the state differ end the run, whatever is to happen when a save fails.
void Saver::save_now(Failed failed) {
  std::string const hash = run_.training.state_hash();
  auto const folder = run_.find_folder(); // the hash took its time
  CheckpointInfo info = run_.describe_state();
  info.state_hash = hash;
  try {
    auto const path = save_checkpoint(folder, info, run_.training.state(), retention(), run_.group.ranks);
    double const seconds = seconds_since(began_);
    note_saved(info.counters.batches_seen, hash, path, {.waited = seconds, .all = seconds});
  } catch (SharedError const& failure) {
    meet_failure(failed, failure);
  }
}

/// Training waits for a copy of the state; a thread writes it.
void Saver::save_in_background(std::filesystem::path const& folder) {
  CheckpointInfo const info = run_.describe_state();
  auto const copy = run_.training.take_snapshot();
  try {
    auto files = std::make_unique<CheckpointSave>(folder, info, copy, retention(), run_.group.ranks);
    being_saved_ = {info.counters.batches_seen, seconds_since(began_)};
    in_background_.emplace(std::move(files),
                           [this](auto const& gets_on) { run_.training.prepare_snapshot_hash(gets_on); });
  } catch (SharedError const& failure) {
    meet_failure(Failed::by_deck, failure);
  }
}

/// Commits what was written beside the training, or waits for it. Collective.
void Saver::finish(Failed failed) {
  if (!in_background_) return;
  auto const start = std::chrono::steady_clock::now();
  in_background_->wait();
  double const written = in_background_->seconds();
  run_.training.settle();
  try {
    std::string hash;
    auto const path = in_background_->commit([&] { return hash = run_.training.snapshot_hash(); });
    in_background_.reset();
    double const waited = being_saved_.seconds_to_begin + seconds_since(start);
    note_saved(being_saved_.batches_seen, hash, path, {.waited = waited, .all = waited + written});
  } catch (SharedError const& failure) {
    in_background_.reset();
    meet_failure(failed, failure);
  }
}

/// Who leaves may have to wait for one under way before the last one.
void Saver::note_saved(std::int64_t batches_seen, std::string const& hash, std::filesystem::path const& path,
                       Seconds seconds) {
  saved_at_ = batches_seen;
  hash_ = hash;
  int const saves = run_.options.in_background ? 2 : 1;
  run_.stop.expect_to_take(2 * saves * seconds.all); // disks have bad days
  run_.progress.clear();
  std::string const waited =
      seconds.waited < seconds.all ? fmt::format("; training waited {} for it", format_duration(seconds.waited)) : "";
  log::info("saved {} in {}{}", path.string(), format_duration(seconds.all), waited);
}

void Saver::meet_failure(Failed failed, SharedError const& failure) {
  bool const stops = run_.options.on_error == SaveFailure::stop;
  if (failed == Failed::ends_run || (failed == Failed::by_deck && stops)) throw failure;
  run_.progress.clear();
  log::warn("{}. The earlier checkpoints are as they were{}", failure.what(),
            failed == Failed::is_told
                ? ""
                : "; the run goes on (checkpoint.on_error is continue), and saves again when the next save is due");
}

} // namespace kozero
