// What lies in the folder of a run: metrics of any text under a mark of any kind, and names of any kind among the
// checkpoints.
#include "fuzz/scratch.hpp"

#include "comm/self_ranks.hpp"
#include "core/hash.hpp"
#include "core/log.hpp"
#include "io/checkpoint.hpp"
#include "io/checkpoint_folder.hpp"
#include "io/checkpoint_list.hpp"
#include "io/event_file.hpp"
#include "io/metrics.hpp"

#include <algorithm>
#include <cstdlib>

using namespace kozero;

namespace fs = std::filesystem;

namespace {

/// Of the text's beginning, or of none.
std::optional<MetricsMark> mark_of(std::string_view text, std::int64_t batches, unsigned char mark) {
  Hash128 hash;
  std::size_t const bytes = text.size() * std::min<std::size_t>(mark, 200) / 200;
  hash.update(text.data(), bytes);
  if (mark % 4 == 1) return MetricsMark{static_cast<std::int64_t>(bytes), hash.hex()};
  if (mark % 4 == 2) return MetricsMark{batches, "no hash"};
  return {};
}

/// A checkpoint of that many batches, whose losses are looked for in the metrics.
void list_one(std::int64_t batches, std::optional<MetricsMark> const& mark) {
  SelfRanks ranks;
  std::string const run = fuzz::scratch() + "/metrics";
  save_checkpoint(run, {.counters = {batches, batches, 0}, .state_hash = "0", .metrics = mark}, {}, 1, ranks);
  auto const listed = list_checkpoints(run);
  if (listed.size() != 1 || !listed[0].info || listed[0].info->metrics != mark) std::abort();
}

void go_on_with(std::string_view text, std::int64_t batches, std::optional<MetricsMark> const& mark) {
  fs::path const folder = fuzz::scratch() + "/metrics";
  fs::remove_all(folder);
  fs::create_directories(folder);
  std::string const path = fuzz::write("metrics/metrics.jsonl", text);
  list_one(batches, mark);
  ResumePoint const point{.batches_seen = batches, .mark = mark};
  MetricsFile file = MetricsFile::resume(path, point);
  file.note(batches, "x");
  EventFile(folder, path, batches + 1);
}

/// A folder for each line, that looks like a checkpoint.
void list(std::string_view names) {
  fs::path const folder = fuzz::scratch() + "/checkpoints";
  fs::remove_all(folder);
  fs::create_directories(folder);
  for (int left = 8; !names.empty() && left > 0; --left) {
    std::string name(names.substr(0, std::min<std::size_t>(names.find('\n'), 100)));
    names.remove_prefix(std::min(names.size(), name.size() + 1));
    std::erase_if(name, [](char c) { return c == '/' || c == '\0'; });
    if (name.empty() || name == "." || name == "..") continue;
    std::error_code ignored;
    fs::create_directories(folder / name, ignored);
    std::ofstream(folder / name / "checkpoint.h5");
  }
  auto const steps = checkpoint::list_steps(folder);
  if (!std::ranges::is_sorted(steps)) std::abort();
  for (std::int64_t const step : steps) {
    if (!fs::exists(checkpoint::step_path(folder, step))) std::abort();
  }
  checkpoint::remove_all_of(folder);
  if (!checkpoint::list_steps(folder).empty()) std::abort();
}

} // namespace

extern "C" int LLVMFuzzerInitialize(int*, char***) {
  log::start(log::Voice::silent);
  return 0;
}

extern "C" int LLVMFuzzerTestOneInput(unsigned char const* data, std::size_t size) {
  if (size < 2) return 0;
  std::string_view const rest = fuzz::text_of(data + 2, size - 2);
  fuzz::refused([&] { go_on_with(rest, data[0], mark_of(rest, data[0], data[1])); });
  fuzz::refused([&] { list(rest); });
  return 0;
}
