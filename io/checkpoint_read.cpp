#include "core/log.hpp"
#include "io/checkpoint.hpp"
#include "io/checkpoint_file.hpp"
#include "io/checkpoint_folder.hpp"

#include <fmt/ranges.h>

#include <map>
#include <unordered_map>

namespace kozero {

namespace fs = std::filesystem;

namespace {

constexpr char const* naming_advice =
    "give the folder of a run (with checkpoints/ in it) or of a checkpoint (step-00000100)";

/// The folder of checkpoints that belongs to a folder: itself, or the one in it.
fs::path checkpoints_in(fs::path const& folder) {
  std::error_code ignored;
  return fs::is_directory(folder / "checkpoints", ignored) ? folder / "checkpoints" : folder;
}

bool is_checkpoint(fs::path const& folder) {
  std::error_code ignored;
  return fs::is_regular_file(folder / checkpoint::info_name, ignored);
}

bool is_empty_or_partial(fs::path const& checkpoints) {
  std::error_code ignored;
  for (auto const& item : fs::directory_iterator(checkpoints, ignored)) {
    if (item.path().extension() != ".partial" && item.is_directory(ignored)) return false;
  }
  return true;
}

} // namespace

fs::path resolve_checkpoint(fs::path const& path) {
  std::error_code ignored;
  KOZERO_REQUIRE(fs::exists(path, ignored), "no checkpoint at '{}' (no such file or folder); {}", path.string(),
                 naming_advice);
  KOZERO_REQUIRE(fs::is_directory(path, ignored), "no checkpoint at '{}' (a file, not a folder); {}", path.string(),
                 naming_advice);
  if (is_checkpoint(path)) return fs::canonical(path);

  fs::path const checkpoints = checkpoints_in(path);
  if (is_checkpoint(checkpoints / checkpoint::latest_name)) return fs::canonical(checkpoints / checkpoint::latest_name);
  if (auto const steps = checkpoint::list_steps(checkpoints); !steps.empty()) {
    auto const newest = fs::canonical(checkpoint::step_path(checkpoints, steps.back()));
    log::warn("'{}' has no usable link 'latest'; taking the newest checkpoint, '{}'", checkpoints.string(),
              newest.string());
    return newest;
  }
  bool const is_run = checkpoints != path;
  KOZERO_REQUIRE(!(is_run && is_empty_or_partial(checkpoints)),
                 "no checkpoint in '{}' (at most partial ones of a save that did not end); start the run anew or give "
                 "another one",
                 checkpoints.string());
  throw Error(
      fmt::format("'{}' is not a checkpoint of kozero (neither {} nor checkpoints/ with complete steps in it); {}",
                  path.string(), checkpoint::info_name, naming_advice));
}

/// The files of a checkpoint's writers, and what those that were needed so far hold.
struct CheckpointReader::Files {
  struct Place {
    std::int64_t rank;
    checkpoint::Piece piece;
  };
  /// All pieces of one tensor that are known, by their first element.
  using Places = std::map<std::int64_t, Place>;

  fs::path folder;
  CheckpointInfo info;
  std::int64_t first = 0;   // the file that is looked into first
  std::int64_t scanned = 0; // that many from there on, round the end
  std::unordered_map<std::string, Places> tensors;
  std::map<std::int64_t, checkpoint::RankFile> open;

  fs::path path(std::int64_t rank) const { return folder / checkpoint::rank_file_name(rank); }

  checkpoint::RankFile& file(std::int64_t rank) {
    constexpr std::size_t most_open = 64; // far below any system's limit
    if (auto const found = open.find(rank); found != open.end()) return found->second;
    if (open.size() == most_open) open.clear();
    checkpoint::Stamp const stamp{rank, info.ranks, info.counters.updates_applied};
    return open.try_emplace(rank, path(rank), stamp).first->second;
  }

  void scan_next() {
    std::int64_t const rank = (first + scanned) % info.ranks;
    for (auto& piece : file(rank).pieces()) {
      Places& places = tensors[piece.tensor];
      require_fits(places, piece, rank);
      std::int64_t const begin = piece.interval.begin;
      places.emplace(begin, Place{rank, std::move(piece)});
    }
    ++scanned;
  }

  void require_fits(Places const& places, checkpoint::Piece const& piece, std::int64_t rank) const {
    auto const after = places.lower_bound(piece.interval.begin);
    bool const overlaps =
        (after != places.end() && after->first < piece.interval.end) ||
        (after != places.begin() && std::prev(after)->second.piece.interval.end > piece.interval.begin);
    KOZERO_REQUIRE(!overlaps,
                   "elements {} to {} of '{}' of '{}' are in another file of the checkpoint too (files were "
                   "exchanged?); resume from another checkpoint",
                   piece.interval.begin, piece.interval.end, piece.tensor, path(rank).string());
  }

  /// The known piece that holds an element.
  Place const* find(Places const& places, std::int64_t element) const {
    auto const after = places.upper_bound(element);
    if (after == places.begin()) return nullptr;
    Place const& place = std::prev(after)->second;
    return place.piece.interval.end > element ? &place : nullptr;
  }

  Place const& locate(std::string const& tensor, std::int64_t element, Interval interval) {
    for (;; scan_next()) {
      auto const places = tensors.find(tensor);
      auto const* const place = places == tensors.end() ? nullptr : find(places->second, element);
      if (place) return *place;
      if (scanned < info.ranks) continue;
      KOZERO_REQUIRE(places != tensors.end(),
                     "checkpoint '{}' has no tensor '{}' (none of {} to {} has it); is it of the deck's model?",
                     folder.string(), tensor, checkpoint::rank_file_name(0),
                     checkpoint::rank_file_name(info.ranks - 1));
      throw Error(
          fmt::format("checkpoint '{}' lacks elements of '{}' (element {} of the wanted {} to {} is in none of {} "
                      "to {}); resume from another checkpoint",
                      folder.string(), tensor, element, interval.begin, interval.end, checkpoint::rank_file_name(0),
                      checkpoint::rank_file_name(info.ranks - 1)));
    }
  }

  void require_same(Place const& place, StateEntry const& entry) const {
    auto const& piece = place.piece;
    KOZERO_REQUIRE(
        piece.shape == entry.shape,
        "'{}' of '{}' has shape [{}] (the model of this run has [{}]); resume with the deck of the checkpoint",
        piece.tensor, path(place.rank).string(), fmt::join(piece.shape, ", "), fmt::join(entry.shape, ", "));
    // A pending gradient is of the type that the deck asks for; the next run may ask for another. It has its loss scale
    // in it, which need not suit fp16.
    bool const converts = entry.kind == "gradient" && entry.type != DType::f16 && is_float(piece.type);
    KOZERO_REQUIRE(piece.type == entry.type || converts,
                   "'{}' of '{}' is {} (this run wants {}{}); resume with the deck of the checkpoint", piece.tensor,
                   path(place.rank).string(), name_of(piece.type), name_of(entry.type),
                   entry.kind == "gradient" && entry.type == DType::f16 ? ", whose range may be too small for it" : "");
  }
};

CheckpointReader::CheckpointReader(fs::path const& folder, ReaderPlace place) : files_(std::make_unique<Files>()) {
  files_->folder = folder;
  files_->info = checkpoint::read_info(folder / checkpoint::info_name);
  std::int64_t const ranks = files_->info.ranks;
  KOZERO_REQUIRE(ranks >= 1, "'{}' says that {} ranks wrote it; resume from another checkpoint",
                 (folder / checkpoint::info_name).string(), ranks);
  files_->first = place.rank * ranks / place.ranks;
}

CheckpointReader::~CheckpointReader() = default;

CheckpointInfo const& CheckpointReader::info() const { return files_->info; }

void CheckpointReader::read(StateEntry const& entry) const {
  std::string const tensor = entry.name + "/" + entry.kind;
  std::int64_t at = entry.interval.begin;
  while (at < entry.interval.end) {
    auto const& place = files_->locate(tensor, at, entry.interval);
    files_->require_same(place, entry);
    Interval const part = intersect({at, entry.interval.end}, place.piece.interval);
    files_->file(place.rank).read(place.piece, part, entry);
    at = part.end;
  }
}

} // namespace kozero
