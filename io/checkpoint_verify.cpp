#include "io/checkpoint_verify.hpp"

#include "io/checkpoint_file.hpp"
#include "io/checkpoint_folder.hpp"
#include "io/checkpoint_whole.hpp"
#include "layout/shape.hpp"

#include <algorithm>
#include <map>
#include <optional>

namespace kozero {

namespace fs = std::filesystem;

namespace {

class Verifier {
public:
  Verifier(fs::path folder, std::span<ExpectedArray const> expected, BytesRead const& progress)
      : folder_(std::move(folder)), expected_(expected), progress_(progress) {}

  Verdict run() {
    attempt([&] { info_ = checkpoint::read_info(folder_ / checkpoint::info_name); });
    if (!info_) return std::move(verdict_);
    ++verdict_.files;
    if (is_old()) verdict_.unchecked = "its files do not say of which save they are, so that one may be of another";
    look_for_files();
    for (std::int64_t const rank : ranks_) {
      attempt([&] { read_file(rank); });
    }
    if (verdict_.faults.empty()) look_for_lost_arrays();
    if (verdict_.faults.empty()) look_for_gaps();
    if (verdict_.faults.empty()) look_at_whole();
    return std::move(verdict_);
  }

private:
  /// From before saves had a number and a file of whole tensors.
  bool is_old() const { return info_->save_id.empty(); }
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

  /// Of a count that is wrong not every file is told.
  void look_for_files() {
    constexpr std::int64_t most_told = 20;
    std::int64_t lost = 0;
    for (std::int64_t rank = 0; rank < info_->ranks && lost < most_told; ++rank) {
      if (is_there(rank)) {
        std::error_code not_known;
        auto const bytes = fs::file_size(path(rank), not_known);
        total_ += not_known ? 0 : static_cast<std::int64_t>(bytes);
        ranks_.push_back(rank);
      } else {
        fault(fmt::format("'{}' is not there, and the checkpoint is of {} ranks", path(rank).string(), info_->ranks));
        ++lost;
      }
    }
  }

  void read_file(std::int64_t rank) {
    checkpoint::RankFile const file(
        path(rank), {rank, info_->ranks, info_->counters.updates_applied, info_->save_id, info_->format_version});
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
      tensors_[dataset.name].push_back({rank, dataset});
    }
  }

  void look_for_lost_arrays() {
    for (auto const& [name, kind] : expected_) {
      if (!tensors_.contains(name + "/" + kind)) fault(fmt::format("no file has elements of '{}/{}'", name, kind));
    }
  }

  void look_for_gaps() {
    for (auto& [name, parts] : tensors_) {
      std::ranges::sort(parts, {}, [](Part const& part) { return part.dataset.interval.begin; });
      auto const& first = parts.front().dataset;
      std::int64_t end = 0;
      for (auto const& [rank, dataset] : parts) {
        if (dataset.shape != first.shape || dataset.type != first.type) {
          fault(fmt::format("the files do not agree on shape and type of '{}'", name));
        }
        note_step(name, end, dataset.interval.begin);
        end = dataset.interval.end;
      }
      note_step(name, end, elements_of(first.shape));
    }
  }

  void look_at_whole() {
    fs::path const file = folder_ / checkpoint::whole_name;
    std::error_code ignored;
    if (!fs::exists(fs::symlink_status(file, ignored))) {
      if (!is_old()) fault(fmt::format("'{}' is not there", file.string()));
      return;
    }
    std::vector<checkpoint::WholeTensor> tensors;
    for (auto const& [name, parts] : tensors_) {
      auto const slash = name.rfind('/');
      auto const& first = parts.front().dataset;
      auto& tensor = tensors.emplace_back(
          checkpoint::WholeTensor{name.substr(0, slash), name.substr(slash + 1), first.shape, first.type});
      for (auto const& part : parts) tensor.parts.push_back({part.rank, part.dataset.interval});
    }
    attempt([&] {
      for (auto& text : checkpoint::faults_of_whole(file, tensors)) fault(std::move(text));
    });
    ++verdict_.files;
  }

  void note_step(std::string const& name, std::int64_t end, std::int64_t begin) {
    if (begin > end) fault(fmt::format("elements {} to {} of '{}' are in no file", end, begin, name));
    if (begin < end) fault(fmt::format("elements {} to {} of '{}' are in two files", begin, end, name));
  }

  struct Part {
    std::int64_t rank = 0;
    checkpoint::StoredDataset dataset;
  };

  fs::path folder_;
  std::span<ExpectedArray const> expected_;
  BytesRead const& progress_;
  Verdict verdict_;
  std::optional<CheckpointInfo> info_;
  std::vector<std::int64_t> ranks_; // whose files are there
  std::int64_t total_ = 0;
  std::map<std::string, std::vector<Part>> tensors_; // "wte.weight/m"
};

} // namespace

Verdict verify_checkpoint(fs::path const& folder, std::span<ExpectedArray const> expected, BytesRead const& progress) {
  return Verifier(folder, expected, progress).run();
}

} // namespace kozero
