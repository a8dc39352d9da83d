// What the commands tell of checkpoints: damage, differences, and what is there.
#include "comm/self_ranks.hpp"
#include "core/error.hpp"
#include "core/hash.hpp"
#include "io/checkpoint_diff.hpp"
#include "io/checkpoint_list.hpp"
#include "io/checkpoint_sample.hpp"
#include "io/checkpoint_verify.hpp"
#include "support/catch.hpp"
#include "support/temporary_folder.hpp"

#include <limits>

using namespace kozero;
using namespace kozero::test;
namespace fs = std::filesystem;

namespace {

/// Two tensors of floats, saved by one rank.
struct FloatState {
  std::vector<float> weight = std::vector<float>(6 * 7), bias = std::vector<float>(5);
  FloatState() {
    for (std::size_t i = 0; i < weight.size(); ++i) weight[i] = static_cast<float>(i) / 8;
  }
  std::vector<StateEntry> entries() {
    return {{"w", "master", {6, 7}, {0, 42}, DType::f32, weight.data(), Space::host},
            {"b", "m", {5}, {0, 5}, DType::f32, bias.data(), Space::host}};
  }
  fs::path save(fs::path const& run, std::int64_t updates, std::optional<double> loss = {},
                std::optional<MetricsMark> const& metrics = {}) {
    SelfRanks ranks;
    CheckpointInfo info = sample_info(updates);
    info.metrics = metrics;
    info.held_out_loss = loss;
    auto const state = entries();
    return save_checkpoint(run, info, state, {99}, ranks);
  }
};

std::vector<ComparedArray> const arrays = {{"w", "master", {6, 7}}, {"b", "m", {5}}};

CheckpointDifference compared(fs::path const& a, fs::path const& b) {
  CheckpointReader const of_a(a), of_b(b);
  return compare_checkpoints({of_a, {}}, {of_b, {}}, arrays, [](std::int64_t) {});
}

Verdict verified(fs::path const& folder, std::vector<ExpectedArray> const& expected = {}) {
  return verify_checkpoint(folder, expected, [](std::int64_t read, std::int64_t all) { CHECK(read <= all); });
}

void flip_byte(fs::path const& file, std::size_t at) {
  std::fstream stream(file, std::ios::binary | std::ios::in | std::ios::out);
  stream.seekg(static_cast<std::streamoff>(at));
  char const flipped = static_cast<char>(stream.get() ^ 1);
  stream.seekp(static_cast<std::streamoff>(at));
  stream.put(flipped);
}

/// Where bytes stand in a file.
std::size_t place_of(fs::path const& file, void const* bytes, std::size_t count) {
  std::ifstream in(file, std::ios::binary);
  std::string const all{std::istreambuf_iterator<char>(in), {}};
  auto const at = all.find(std::string(static_cast<char const*>(bytes), count));
  REQUIRE(at != std::string::npos);
  return at;
}

} // namespace

TEST_CASE("a difference is named by its tensor and element, counted and measured") {
  TemporaryFolder const run;
  FloatState state;
  fs::path const a = state.save(run.path(), 1);
  CHECK(compared(a, state.save(run.path(), 2)).different == 0);
  state.weight[17] += 0.5f; // row 2, column 3
  state.bias[4] = -2;
  fs::path const b = state.save(run.path(), 3);
  auto const found = compared(a, b);
  CHECK(found.elements == 47);
  CHECK(found.arrays == 2);
  CHECK(found.different == 2);
  CHECK(found.arrays_different == 2);
  CHECK(found.first->array == "w/master");
  CHECK(found.first->index == 17);
  CHECK(found.first->place == std::vector<std::int64_t>{2, 3});
  CHECK(found.first->a == 17.0 / 8);
  CHECK(found.first->b == 17.0 / 8 + 0.5);
  CHECK(found.largest->array == "b/m");
  CHECK(found.largest->index == 4);
  CHECK(found.largest->size() == 2);
}

TEST_CASE("differences are of bits: a zero's sign and a NaN are some") {
  TemporaryFolder const run;
  FloatState state;
  fs::path const a = state.save(run.path(), 1);
  state.bias[0] = -0.0f;
  state.bias[1] = std::numeric_limits<float>::quiet_NaN();
  auto const found = compared(a, state.save(run.path(), 2));
  CHECK(found.different == 2);
  CHECK(found.first->index == 0);
  CHECK(found.first->size() == 0);
  CHECK(found.largest->index == 1);
  CHECK(std::isinf(found.largest->size()));
  CHECK(compared(run.path() / fs::path("checkpoints/step-00000002"), run.path() / fs::path("checkpoints/step-00000002"))
            .different == 0);
}

TEST_CASE("a whole checkpoint is told whole, with all that was read") {
  TemporaryFolder const run;
  auto state = SampleState::whole(odd_tensors());
  SelfRanks ranks;
  Verdict const verdict = verified(save_checkpoint(run.path(), sample_info(1), state.entries(), {1}, ranks));
  CHECK(verdict.faults.empty());
  CHECK(verdict.files == 3);
  std::int64_t bytes = 0, datasets = 0;
  for (auto const& entry : state.entries()) {
    bytes += entry.interval.size() * size_of(entry.type);
    datasets += entry.interval.empty() ? 0 : 1;
  }
  CHECK(verdict.bytes == bytes);
  CHECK(verdict.datasets == datasets);
}

TEST_CASE("every fault of a checkpoint is told, by file and dataset") {
  TemporaryFolder const run;
  FloatState state;
  state.bias = {1.25f, 2.5f, 3, 4, 5};
  fs::path const folder = state.save(run.path(), 1);
  fs::path const file = folder / "rank-00000.h5";
  SECTION("two damaged datasets are two faults") {
    flip_byte(file, place_of(file, state.weight.data() + 3, 8));
    flip_byte(file, place_of(file, state.bias.data(), 8));
    Verdict const verdict = verified(folder);
    REQUIRE(verdict.faults.size() == 2);
    CHECK(contains(verdict.faults[0] + verdict.faults[1], {"'w/master'", "'b/m'", file.string(), "checksum"}));
  }
  SECTION("a file that is lost") {
    fs::remove(file);
    Verdict const verdict = verified(folder);
    REQUIRE(verdict.faults.size() == 1);
    CHECK(contains(verdict.faults[0], {file.string(), "is not there"}));
  }
  SECTION("a file that is cut") {
    fs::resize_file(file, fs::file_size(file) - 1);
    CHECK(verified(folder).faults.size() == 1);
  }
  SECTION("no checkpoint.h5") {
    fs::remove(folder / "checkpoint.h5");
    Verdict const verdict = verified(folder);
    REQUIRE(verdict.faults.size() == 1);
    CHECK(contains(verdict.faults[0], {"checkpoint.h5"}));
  }
}

TEST_CASE("elements that no file holds are faults") {
  TemporaryFolder const run;
  SampleState state;
  state.add({"wte", {20, 30}}, "m", {100, 200});
  SelfRanks ranks;
  Verdict const verdict = verified(save_checkpoint(run.path(), sample_info(1), state.entries(), {1}, ranks));
  REQUIRE(verdict.faults.size() == 2);
  CHECK(contains(verdict.faults[0], {"elements 0 to 100 of 'wte/m' are in no file"}));
  CHECK(contains(verdict.faults[1], {"elements 200 to 600 of 'wte/m' are in no file"}));
}

TEST_CASE("an array that no file has, and a file of another save of that update, are faults") {
  TemporaryFolder const run, other;
  FloatState state;
  fs::path const folder = state.save(run.path(), 1);
  CHECK(verified(folder, {{"w", "master"}, {"b", "m"}}).faults.empty());
  auto const lost = verified(folder, {{"w", "master"}, {"w", "v"}});
  REQUIRE(lost.faults.size() == 1);
  CHECK(contains(lost.faults[0], {"'w/v'", "no file"}));
  state.weight[3] += 1;
  fs::copy_file(state.save(other.path(), 1) / "rank-00000.h5", folder / "rank-00000.h5",
                fs::copy_options::overwrite_existing);
  auto const mixed = verified(folder);
  REQUIRE(mixed.faults.size() == 1);
  CHECK(contains(mixed.faults[0], {"rank-00000.h5", "of another checkpoint"}));
}

TEST_CASE("a file of whole tensors that shows others, or cannot be read, is a fault") {
  TemporaryFolder const run, other;
  FloatState state;
  fs::path const folder = state.save(run.path(), 1);
  fs::path const whole = folder / "tensors.h5";
  SECTION("of other tensors") {
    SelfRanks ranks;
    auto entries = state.entries();
    entries[0].shape = {7, 6};
    entries.pop_back();
    fs::path const another = save_checkpoint(other.path(), sample_info(1), entries, {1}, ranks);
    fs::copy_file(another / "tensors.h5", whole, fs::copy_options::overwrite_existing);
    auto const verdict = verified(folder);
    REQUIRE(verdict.faults.size() == 2);
    CHECK(contains(verdict.faults[0], {"optimizer/m/b"}));
    CHECK(contains(verdict.faults[1], {"parameters/w", "does not show"}));
  }
  SECTION("cut") {
    fs::resize_file(whole, fs::file_size(whole) / 2);
    auto const verdict = verified(folder);
    REQUIRE(verdict.faults.size() == 1);
    CHECK(contains(verdict.faults[0], {"tensors.h5"}));
  }
  SECTION("lost") {
    fs::remove(whole);
    auto const verdict = verified(folder);
    REQUIRE(verdict.faults.size() == 1);
    CHECK(contains(verdict.faults[0], {"tensors.h5' is not there"}));
  }
}

TEST_CASE("a list has what the files say, and names what cannot be read") {
  TemporaryFolder const run;
  CHECK(list_checkpoints(run.path()).empty());
  FloatState state;
  for (std::int64_t const updates : {10, 20, 30}) state.save(run.path(), updates, 1.0 / static_cast<double>(updates));
  fs::remove(run.path() + std::string("/checkpoints/step-00000020/checkpoint.h5"));
  std::ofstream(run.path() + std::string("/checkpoints/step-00000020/checkpoint.h5")) << "half";
  auto const all = list_checkpoints(run.path());
  REQUIRE(all.size() == 3);
  CHECK(all[0].info->counters.updates_applied == 10);
  CHECK(all[0].held_out_loss == 0.1);
  CHECK(all[0].bytes > 47 * 4);
  CHECK_FALSE(all[0].is_newest);
  CHECK_FALSE(all[1].info);
  CHECK(contains(all[1].problem, {"step-00000020/checkpoint.h5"}));
  CHECK(all[2].is_newest);
  CHECK(std::chrono::system_clock::now() - all[2].saved < std::chrono::hours(1));
}

TEST_CASE("pruning removes what is not to stay, never the newest, and a dry run nothing") {
  TemporaryFolder const run;
  FloatState state;
  double loss = 1;
  for (std::int64_t const updates : {10, 20, 30, 40}) state.save(run.path(), updates, loss++);
  fs::path const checkpoints = fs::path(run.path()) / "checkpoints";
  fs::create_directory(checkpoints / "step-00000050.partial");
  for (Prune const mode : {Prune::dry_run, Prune::now}) {
    Pruned const pruned = prune_checkpoints(run.path(), {1, 1}, mode);
    CHECK(pruned.checkpoints == std::vector<fs::path>{checkpoints / "step-00000020", checkpoints / "step-00000030"});
    CHECK(pruned.partial == std::vector<fs::path>{checkpoints / "step-00000050.partial"});
    CHECK(pruned.bytes > 2 * 47 * 4);
    CHECK(fs::exists(checkpoints / "step-00000020") == (mode == Prune::dry_run));
    CHECK(fs::exists(checkpoints / "step-00000050.partial") == (mode == Prune::dry_run));
  }
  CHECK(count_checkpoints(run.path()) == 2);
  CHECK(prune_checkpoints(run.path(), {1, 0}, Prune::now).checkpoints ==
        std::vector<fs::path>{checkpoints / "step-00000010"});
  CHECK(prune_checkpoints(run.path(), {1, 0}, Prune::now).checkpoints.empty());
}

namespace {

std::string loss_line(Counters const& at, double loss) {
  return fmt::format("{{\"batch\": {}, \"updates_applied\": {}, \"val_loss\": {}}}\n", at.batches_seen,
                     at.updates_applied, loss);
}

/// Of a metrics file that begins so.
MetricsMark mark_of(std::string const& text) {
  Hash128 hash;
  hash.update(text.data(), text.size());
  return {std::ssize(text), hash.hex()};
}

} // namespace

TEST_CASE("pruning has the losses of the list: those of the metrics count, where they are of the same state") {
  TemporaryFolder const run;
  FloatState state;
  std::string metrics = "{\"batch\": 1, \"loss\": 5}\n";
  for (std::int64_t const updates : {10, 20, 30, 40}) {
    state.save(run.path(), updates, updates == 30 ? std::optional(2.0) : std::nullopt, mark_of(metrics));
    Counters of = sample_info(updates).counters;
    if (updates == 20) ++of.updates_applied; // a delayed update has come between
    if (updates < 30) metrics += loss_line(of, updates == 20 ? 0.5 : 1.5);
    metrics += "{\"batch\": 1, \"loss\": 5}\n";
  }
  run.write("metrics.jsonl", metrics);
  auto const listed = list_checkpoints(run.path());
  CHECK(listed[0].held_out_loss == 1.5);
  CHECK_FALSE(listed[1].held_out_loss);
  CHECK(listed[2].held_out_loss == 2.0);
  auto const pruned = prune_checkpoints(run.path(), {1, 1}, Prune::now);
  fs::path const checkpoints = fs::path(run.path()) / "checkpoints";
  CHECK(pruned.checkpoints == std::vector<fs::path>{checkpoints / "step-00000020", checkpoints / "step-00000030"});
}

TEST_CASE("pruning goes on where something stays, tells it, and leaves the link at the newest") {
  TemporaryFolder const run;
  FloatState state;
  for (std::int64_t const updates : {10, 20, 30, 40}) state.save(run.path(), updates);
  fs::path const checkpoints = fs::path(run.path()) / "checkpoints";
  std::ofstream(checkpoints / "step-00000010" / "notes.txt") << "mine";
  std::ofstream(checkpoints / "step-00000020" / "checkpoint.h5") << "not readable now";
  fs::remove(checkpoints / "latest");
  fs::create_directory_symlink("step-00000030", checkpoints / "latest"); // as a kill leaves it
  auto const pruned = prune_checkpoints(run.path(), {1}, Prune::now);
  CHECK(pruned.checkpoints == std::vector<fs::path>{checkpoints / "step-00000030"});
  REQUIRE(pruned.problems.size() == 1);
  CHECK(contains(pruned.problems[0], {"step-00000010'", "did not write"}));
  CHECK(fs::exists(checkpoints / "step-00000010" / "notes.txt"));
  CHECK(fs::exists(checkpoints / "step-00000020"));
  CHECK(fs::read_symlink(checkpoints / "latest") == "step-00000040");
}
