#include "io/checkpoint_verify.hpp"

#include "io/checkpoint_file.hpp"
#include "io/checkpoint_folder.hpp"

#include <algorithm>
#include <map>
#include <optional>

namespace kozero {

namespace fs = std::filesystem;

namespace {

class Verifier {
public:
  Verifier(fs::path folder, BytesRead const& progress) : folder_(std::move(folder)), progress_(progress) {}

  Verdict run() {
    attempt([&] { info_ = checkpoint::read_info(folder_ / checkpoint::info_name); });
    if (!info_) return std::move(verdict_);
    ++verdict_.files;
    for (std::int64_t rank = 0; rank < info_->ranks && is_there(rank); ++rank) {
      total_ += static_cast<std::int64_t>(fs::file_size(path(rank)));
    }
    for (std::int64_t rank = 0; rank < info_->ranks; ++rank) {
      if (!is_there(rank)) {
        fault(fmt::format("'{}' is not there, and the checkpoint is of {} ranks", path(rank).string(), info_->ranks));
        break; // a count that is wrong is not followed further
      }
      attempt([&] { read_file(rank); });
    }
    if (verdict_.faults.empty()) look_for_gaps();
    return std::move(verdict_);
  }

private:
  fs::path path(std::int64_t rank) const { return folder_ / checkpoint::rank_file_name(rank); }
  bool is_there(std::int64_t rank) const {
    std::error_code ignored;
    return fs::is_regular_file(path(rank), ignored);
  }
  void fault(std::string text) { verdict_.faults.push_back(std::move(text)); }
  template <class Task>
  void attempt(Task&& task) {
    try {
      task();
    } catch (Error const& error) {
      fault(error.what());
    }
  }

  void read_file(std::int64_t rank) {
    checkpoint::RankFile const file(path(rank),
                                    {rank, info_->ranks, info_->counters.updates_applied, info_->format_version});
    ++verdict_.files;
    for (auto const& dataset : file.datasets()) {
      std::int64_t const before = verdict_.bytes;
      std::int64_t const width = size_of(dataset.type);
      attempt([&] {
        file.read(dataset, dataset.interval, [&](Interval tile, unsigned char const*) {
          verdict_.bytes += tile.size() * width;
          progress_(verdict_.bytes, total_);
        });
      });
      verdict_.bytes = before + dataset.interval.size() * width;
      ++verdict_.datasets;
      tensors_[dataset.name].push_back(dataset);
    }
  }

  void look_for_gaps() {
    for (auto& [name, datasets] : tensors_) {
      std::ranges::sort(datasets, {}, [](auto const& dataset) { return dataset.interval.begin; });
      std::int64_t size = 1;
      for (std::int64_t const extent : datasets.front().shape) size *= extent;
      std::int64_t end = 0;
      for (auto const& dataset : datasets) {
        if (dataset.shape != datasets.front().shape || dataset.type != datasets.front().type) {
          fault(fmt::format("the files do not agree on shape and type of '{}'", name));
        }
        note_step(name, end, dataset.interval.begin);
        end = dataset.interval.end;
      }
      note_step(name, end, size);
    }
  }

  void note_step(std::string const& name, std::int64_t end, std::int64_t begin) {
    if (begin > end) fault(fmt::format("elements {} to {} of '{}' are in no file", end, begin, name));
    if (begin < end) fault(fmt::format("elements {} to {} of '{}' are in two files", begin, end, name));
  }

  fs::path folder_;
  BytesRead const& progress_;
  Verdict verdict_;
  std::optional<CheckpointInfo> info_;
  std::int64_t total_ = 0;
  std::map<std::string, std::vector<checkpoint::StoredDataset>> tensors_;
};

} // namespace

Verdict verify_checkpoint(fs::path const& folder, BytesRead const& progress) {
  return Verifier(folder, progress).run();
}

} // namespace kozero
