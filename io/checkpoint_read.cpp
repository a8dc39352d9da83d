#include "io/checkpoint.hpp"
#include "io/checkpoint_file.hpp"
#include "io/checkpoint_folder.hpp"
#include "io/checkpoint_memory.hpp"

#include <fmt/ranges.h>

#include <map>
#include <unordered_map>

namespace kozero {

namespace fs = std::filesystem;

/// The files of a checkpoint's writers, and what those that were needed so far hold.
struct CheckpointReader::Files {
  struct Found {
    std::int64_t rank;
    checkpoint::StoredDataset dataset;
  };
  /// All datasets of one tensor that are known, by their first element.
  using Datasets = std::map<std::int64_t, Found>;

  fs::path folder;
  CheckpointInfo info;
  std::int64_t first = 0;   // the file that is looked into first
  std::int64_t scanned = 0; // that many from there on, round the end
  std::unordered_map<std::string, Datasets> tensors;
  std::map<std::int64_t, checkpoint::RankFile> open;

  fs::path path(std::int64_t rank) const { return folder / checkpoint::rank_file_name(rank); }

  checkpoint::RankFile& file(std::int64_t rank) {
    constexpr std::size_t most_open = 64; // far below any system's limit
    if (auto const found = open.find(rank); found != open.end()) return found->second;
    if (open.size() == most_open) open.clear();
    checkpoint::Stamp const stamp{rank, info.ranks, info.counters.updates_applied, info.save_id, info.format_version};
    return open.try_emplace(rank, path(rank), stamp).first->second;
  }

  void scan_next() {
    std::int64_t const rank = (first + scanned) % info.ranks;
    for (auto& dataset : file(rank).datasets()) {
      Datasets& others = tensors[dataset.name];
      require_fits(others, dataset, rank);
      std::int64_t const begin = dataset.interval.begin;
      others.emplace(begin, Found{rank, std::move(dataset)});
    }
    ++scanned;
  }

  void require_fits(Datasets const& others, checkpoint::StoredDataset const& dataset, std::int64_t rank) const {
    auto const after = others.lower_bound(dataset.interval.begin);
    bool const overlaps =
        (after != others.end() && after->first < dataset.interval.end) ||
        (after != others.begin() && std::prev(after)->second.dataset.interval.end > dataset.interval.begin);
    KOZERO_REQUIRE(!overlaps,
                   "elements {} to {} of '{}' of '{}' are in another file of the checkpoint too (files were "
                   "exchanged?); resume from another checkpoint",
                   dataset.interval.begin, dataset.interval.end, dataset.name, path(rank).string());
  }

  /// The known dataset that holds an element.
  static Found const* find(Datasets const& datasets, std::int64_t element) {
    auto const after = datasets.upper_bound(element);
    if (after == datasets.begin()) return nullptr;
    Found const& found = std::prev(after)->second;
    return found.dataset.interval.end > element ? &found : nullptr;
  }

  Found const& locate(std::string const& tensor, std::int64_t element, Interval interval) {
    for (;; scan_next()) {
      auto const datasets = tensors.find(tensor);
      auto const* const found = datasets == tensors.end() ? nullptr : find(datasets->second, element);
      if (found) return *found;
      if (scanned < info.ranks) continue;
      KOZERO_REQUIRE(datasets != tensors.end(),
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

  void require_same(Found const& found, StateEntry const& entry) const {
    auto const& dataset = found.dataset;
    KOZERO_REQUIRE(
        dataset.shape == entry.shape,
        "'{}' of '{}' has shape [{}] (the model of this run has [{}]); resume with the deck of the checkpoint",
        dataset.name, path(found.rank).string(), fmt::join(dataset.shape, ", "), fmt::join(entry.shape, ", "));
    // A pending gradient is of the type that the deck asks for; the next run may ask for another. It has its loss scale
    // in it, which need not suit fp16.
    bool const converts = entry.kind == "gradient" && entry.type != DType::f16 && is_float(dataset.type);
    KOZERO_REQUIRE(dataset.type == entry.type || converts,
                   "'{}' of '{}' is {} (this run wants {}{}); resume with the deck of the checkpoint", dataset.name,
                   path(found.rank).string(), name_of(dataset.type), name_of(entry.type),
                   entry.kind == "gradient" && entry.type == DType::f16 ? ", whose range may be too small for it" : "");
  }

  /// take(interval, type, elements) for all of the entry's interval, tile by tile, as the files have it.
  template <class Take>
  void read(StateEntry const& entry, Take const& take) {
    std::string const tensor = entry.name + "/" + entry.kind;
    for (std::int64_t at = entry.interval.begin; at < entry.interval.end;) {
      auto const& found = locate(tensor, at, entry.interval);
      require_same(found, entry);
      Interval const part = intersect({at, entry.interval.end}, found.dataset.interval);
      file(found.rank).read(found.dataset, part, [&](Interval tile, unsigned char const* elements) {
        take(tile, found.dataset.type, elements);
      });
      at = part.end;
    }
  }

  void read(StateEntry const& entry) {
    read(entry, [&](Interval tile, DType type, unsigned char const* elements) {
      checkpoint::fill(entry, tile, type, elements);
    });
  }

  /// `entries` of one tensor and kind, which was stored with its dimensions exchanged.
  void read_transposed(std::vector<StateEntry> const& entries, FormerTensor const& former) {
    StateEntry stood = former_entry(entries.front(), former);
    stood.interval = {former.begin, former.begin + entries.front().shape[0] * entries.front().shape[1]};
    checkpoint::TransposedFill fill(entries);
    read(stood, [&](Interval tile, DType type, unsigned char const* elements) {
      fill.take({tile.begin - former.begin, tile.end - former.begin}, type, elements);
    });
    fill.finish();
  }

  /// The entry as an entry of the tensor that it was a part of.
  static StateEntry former_entry(StateEntry entry, FormerTensor const& former) {
    entry.name = former.name;
    entry.shape = former.shape;
    entry.interval = {former.begin + entry.interval.begin, former.begin + entry.interval.end};
    return entry;
  }
};

CheckpointReader::CheckpointReader(fs::path const& folder, ReaderPlace place) : files_(std::make_unique<Files>()) {
  files_->folder = folder;
  files_->info = checkpoint::read_info(folder / checkpoint::info_name);
  std::int64_t const ranks = files_->info.ranks;
  std::error_code ignored;
  KOZERO_REQUIRE(
      fs::exists(files_->path(ranks - 1), ignored),
      "'{}' says that {} ranks wrote it, but there is no '{}' (was it lost?); resume from another checkpoint",
      (folder / checkpoint::info_name).string(), ranks, files_->path(ranks - 1).string());
  // rank * ranks / place.ranks, without a product that grows with what the file says
  files_->first = ranks / place.ranks * place.rank + ranks % place.ranks * place.rank / place.ranks;
}

CheckpointReader::~CheckpointReader() = default;

CheckpointInfo const& CheckpointReader::info() const { return files_->info; }

void CheckpointReader::read(std::span<StateEntry const> entries, FormerTensors const& former) const {
  std::map<std::pair<std::string, std::string>, std::vector<StateEntry>> transposed; // by name and kind
  for (StateEntry const& entry : entries) {
    auto const place = former.find(entry.name);
    if (entry.interval.empty()) continue;
    if (place == former.end()) {
      files_->read(entry);
    } else if (place->second.order == FormerTensor::Order::as_stored) {
      files_->read(Files::former_entry(entry, place->second));
    } else {
      transposed[{entry.name, entry.kind}].push_back(entry);
    }
  }
  for (auto const& [tensor, group] : transposed) files_->read_transposed(group, former.at(tensor.first));
}

void CheckpointReader::read(StateEntry const& entry, FormerTensors const& former) const {
  read(std::span(&entry, 1), former);
}

} // namespace kozero
