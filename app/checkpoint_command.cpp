#include "app/commands.hpp"

#include "config/compare.hpp"
#include "core/error.hpp"
#include "core/format.hpp"
#include "core/log.hpp"
#include "io/checkpoint_diff.hpp"
#include "io/checkpoint_list.hpp"
#include "io/checkpoint_verify.hpp"
#include "io/deck.hpp"
#include "io/run_folder.hpp"
#include "layout/shape.hpp"
#include "model/families.hpp"

#include <fmt/chrono.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <functional>
#include <limits>
#include <set>
#include <tuple>

namespace kozero {

namespace {

namespace fs = std::filesystem;

/// Says now and then how far a long reading has come.
class ReadingProgress {
public:
  void operator()(std::int64_t bytes, std::int64_t of) {
    auto const now = std::chrono::steady_clock::now();
    if (now - told_ < std::chrono::seconds(5)) return;
    told_ = now;
    log::info("read {} of {}", format_bytes(bytes), format_bytes(of));
  }
  double seconds() const { return std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count(); }

private:
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
  std::chrono::steady_clock::time_point told_ = start_;
};

// ---- ls

using Row = std::array<std::string, 9>;

std::string loss_text(std::optional<double> const& loss) { return loss ? fmt::format("{:.4f}", *loss) : "-"; }

/// Tokens of the run until there, where the deck says how long a window is.
std::string tokens_text(CheckpointInfo const& info) {
  try {
    std::int64_t const context = read_stored_deck(info.deck, info.format_version).config.model.context;
    return format_count(static_cast<double>(info.counters.batches_seen) * static_cast<double>(info.global_batch) *
                        static_cast<double>(context));
  } catch (Error const&) {
    return "-";
  }
}

Row row_of(ListedCheckpoint const& listed, bool is_best) {
  CheckpointInfo const& info = *listed.info;
  std::string const marks = fmt::format("{}{}{}", listed.is_newest ? "newest" : "",
                                        listed.is_newest && is_best ? ", " : "", is_best ? "best" : "");
  return {fmt::format("{}", info.counters.updates_applied),
          tokens_text(info),
          loss_text(listed.loss),
          loss_text(listed.held_out_loss),
          format_bytes(listed.bytes),
          fmt::format("{}", info.ranks),
          fmt::format("{:%Y-%m-%d %H:%M:%S}", fmt::localtime(std::chrono::system_clock::to_time_t(listed.saved))),
          info.state_hash,
          marks};
}

/// Columns as wide as their widest word; numbers end, texts begin together.
void print_table(std::vector<Row> const& rows) {
  constexpr std::size_t first_text = 6;
  std::array<std::size_t, std::tuple_size_v<Row>> widths = {};
  for (auto const& row : rows) {
    for (std::size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], row[i].size());
  }
  for (auto const& row : rows) {
    std::string line;
    for (std::size_t i = 0; i < row.size(); ++i) {
      line += i < first_text ? fmt::format("{:>{}}  ", row[i], widths[i]) : fmt::format("{:<{}}  ", row[i], widths[i]);
    }
    fmt::print("{}\n", line.substr(0, line.find_last_not_of(' ') + 1));
  }
}

// ---- diff

/// A checkpoint with what is needed to read its tensors by today's names.
struct Compared {
  explicit Compared(std::string const& wanted)
      : path(resolve_checkpoint(wanted)), reader(path),
        deck(read_stored_deck(reader.info().deck, reader.info().format_version)),
        former(architecture_of(deck.config.model)->former_tensors(reader.info().format_version)) {}

  ComparedCheckpoint tensors() const { return {reader, former}; }
  bool has_pending() const { return reader.info().pending_gradient_scale.has_value(); }

  fs::path path;
  CheckpointReader reader;
  StoredDeck deck;
  FormerTensors former;
};

void require_same_model(Compared const& a, Compared const& b) {
  std::vector<std::string> differences;
  for (auto const& difference : compare_decks(a.deck.config, b.deck.config)) {
    bool const of_model = difference.key.starts_with("model.") && difference.severity == Severity::forbidden;
    if (of_model)
      differences.push_back(fmt::format("{}: {} and {}", difference.key, difference.before, difference.now));
  }
  KOZERO_REQUIRE(differences.empty(), "'{}' and '{}' are of different models ({}); compare checkpoints of one model",
                 a.path.string(), b.path.string(), fmt::join(differences, ", "));
}

std::vector<ComparedArray> arrays_of(Compared const& a, Compared const& b) {
  std::vector<std::string> kinds = {"master", "m", "v"};
  if (a.has_pending() && b.has_pending()) kinds.emplace_back("gradient");
  std::vector<ComparedArray> arrays;
  for (auto const& block : architecture_of(a.deck.config.model)->layout()) {
    for (auto const& tensor : block.tensors()) {
      for (auto const& kind : kinds) arrays.push_back({tensor.spec.name, kind, tensor.spec.shape});
    }
  }
  return arrays;
}

std::string scales_text(CheckpointInfo const& info) {
  std::string text;
  if (auto const& state = info.loss_scale) {
    text += fmt::format(", loss scale {} ({} updates without an overflow, {} overflows)", state->scale,
                        state->clean_in_row, state->overflows);
  }
  if (info.pending_gradient_scale) text += fmt::format(", an update pending (scale {})", *info.pending_gradient_scale);
  return text;
}

std::string data_text(CheckpointInfo const& info) {
  return info.training_data ? ", data of " + to_text(*info.training_data) : ", data that it does not name";
}

/// Those of the model that its deck describes, by the names of the files. Error where the deck cannot be read.
std::vector<ExpectedArray> expected_of(fs::path const& checkpoint) {
  Compared const one(checkpoint.string());
  std::set<std::pair<std::string, std::string>> names; // of former tensors several are parts of one
  for (auto const& array : arrays_of(one, one)) {
    auto const former = one.former.find(array.name);
    names.emplace(former == one.former.end() ? array.name : former->second.name, array.kind);
  }
  std::vector<ExpectedArray> expected;
  for (auto const& [name, kind] : names) expected.push_back({name, kind});
  return expected;
}

/// What checkpoint.h5 says of each. Returns whether that differs in what a run goes on from.
bool tell_standing(Compared const& a, Compared const& b) {
  bool const has_other_data = a.reader.info().training_data != b.reader.info().training_data;
  for (auto const* one : {&a, &b}) {
    Counters const& at = one->reader.info().counters;
    fmt::print("{}: update {}, batch {} of {} windows, {} skipped{}{}\n", one->path.string(), at.updates_applied,
               at.batches_seen, one->reader.info().global_batch, at.updates_skipped, scales_text(one->reader.info()),
               has_other_data ? data_text(one->reader.info()) : "");
  }
  auto const standing = [](CheckpointInfo const& info) {
    Counters const& at = info.counters;
    return std::tuple(at.updates_applied, at.batches_seen, info.global_batch, at.updates_skipped, info.loss_scale,
                      info.pending_gradient_scale, info.training_data);
  };
  return standing(a.reader.info()) != standing(b.reader.info());
}

std::string text_of(CheckpointDifference::Element const& element) {
  return fmt::format("{} [{}] (element {}): {} and {}, {:.3g} apart", element.array, fmt::join(element.place, ", "),
                     element.index, static_cast<float>(element.a), static_cast<float>(element.b), element.size());
}

// ---- prune

/// Returns the exit status.
int tell(Pruned const& pruned, bool dry_run) {
  char const* const what = dry_run ? "would remove" : "removed";
  for (auto const* folders : {&pruned.checkpoints, &pruned.partial}) {
    for (auto const& folder : *folders) fmt::print("{} {}\n", what, folder.string());
  }
  fmt::print("{} {} checkpoints and {} unfinished ones, {}\n", what, pruned.checkpoints.size(), pruned.partial.size(),
             format_bytes(pruned.bytes));
  for (auto const& problem : pruned.problems) log::error("{}", problem);
  return pruned.problems.empty() ? exit_done : exit_failed;
}

void require_run(std::string const& path) {
  std::error_code ignored;
  if (fs::is_directory(fs::path(path) / "checkpoints", ignored)) return;
  throw InputError(
      fmt::format("'{}' is not the folder of a run (there is no folder checkpoints in it); give run.dir", path));
}

} // namespace

int run_checkpoint_ls(CheckpointArguments const& arguments) {
  require_run(arguments.path);
  auto const all = list_checkpoints(arguments.path);
  auto const best = std::ranges::min_element(all, {}, [](auto const& listed) {
    return listed.held_out_loss.value_or(std::numeric_limits<double>::infinity());
  });
  std::vector<Row> rows = {{"update", "tokens", "loss", "held-out", "size", "ranks", "saved", "state", ""}};
  for (auto const& listed : all) {
    if (listed.info) rows.push_back(row_of(listed, &listed == &*best && listed.held_out_loss));
  }
  if (!all.empty()) print_table(rows);
  for (auto const& listed : all) {
    if (!listed.info) log::error("{}", listed.problem);
  }
  if (all.empty()) log::info("'{}' has no checkpoints", arguments.path);
  return rows.size() == all.size() + 1 ? exit_done : exit_failed;
}

int run_checkpoint_verify(CheckpointArguments const& arguments) {
  fs::path const path = resolve_checkpoint(arguments.path);
  ReadingProgress progress;
  std::vector<ExpectedArray> expected;
  std::string not_known;
  try {
    expected = expected_of(path);
  } catch (Error const& error) {
    not_known = error.what();
  }
  Verdict const verdict = verify_checkpoint(path, expected, std::ref(progress));
  for (auto const& fault : verdict.faults) log::error("{}", fault);
  if (!verdict.faults.empty()) {
    log::error("'{}' is damaged: {} faults in {} datasets of {} files", path.string(), verdict.faults.size(),
               verdict.datasets, verdict.files);
    return exit_failed;
  }
  if (!not_known.empty()) {
    log::error("whether all tensors of the model are there cannot be told: {}", not_known);
    return exit_failed;
  }
  if (!verdict.unchecked.empty()) log::warn("{} (resuming compares the hash of the whole state)", verdict.unchecked);
  fmt::print("{}: whole; {} datasets of {} files, {} in {}\n", path.string(), verdict.datasets, verdict.files,
             format_bytes(verdict.bytes), format_duration(progress.seconds()));
  return exit_done;
}

int run_checkpoint_diff(CheckpointArguments const& arguments) {
  Compared const a(arguments.path);
  Compared const b(arguments.other);
  require_same_model(a, b);
  auto const arrays = arrays_of(a, b);
  std::int64_t all = 0;
  for (auto const& array : arrays) all += 2 * size_of(DType::f32) * elements_of(array.shape);
  bool const stand_apart = tell_standing(a, b);
  ReadingProgress progress;
  auto const found =
      compare_checkpoints(a.tensors(), b.tensors(), arrays, [&](std::int64_t bytes) { progress(bytes, all); });
  if (found.different == 0) {
    fmt::print("all {} elements of {} arrays are the same bits\n", found.elements, found.arrays);
    return stand_apart ? exit_failed : exit_done;
  }
  fmt::print("first difference:   {}\n", text_of(*found.first));
  fmt::print("largest difference: {}\n", text_of(*found.largest));
  fmt::print("{} of {} elements differ, in {} of {} arrays\n", found.different, found.elements, found.arrays_different,
             found.arrays);
  return exit_failed;
}

int run_checkpoint_prune(CheckpointArguments const& arguments) {
  require_run(arguments.path);
  Retention const retention(arguments.keep, arguments.keep_best);
  if (arguments.dry_run) return tell(prune_checkpoints(arguments.path, retention, Prune::dry_run), true);
  RunFolder const held(arguments.path); // of a run that goes on, it is refused
  if (!held.is_locked() && !arguments.no_run_is_on) {
    throw InputError(fmt::format("'{}' cannot be locked, so that a run may be saving there; look, then give "
                                 "--no-run-is-on",
                                 held.path()));
  }
  return tell(prune_checkpoints(held.path(), retention, Prune::now), false);
}

} // namespace kozero
