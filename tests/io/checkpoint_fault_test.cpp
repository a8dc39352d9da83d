// Checkpoints that were damaged, mixed up or do not fit: refused with the file and the dataset, never believed.
#include "comm/self_ranks.hpp"
#include "core/error.hpp"
#include "io/checkpoint.hpp"
#include "io/checkpoint_sample.hpp"
#include "io/run_folder.hpp"
#include "support/catch.hpp"
#include "support/temporary_folder.hpp"

#include <hdf5.h>

using namespace kozero;
using namespace kozero::test;
namespace fs = std::filesystem;

namespace {

struct Saved {
  explicit Saved(SampleState saved, std::int64_t updates = 10) : state(std::move(saved)) {
    SelfRanks ranks;
    folder = save_checkpoint(run.path(), sample_info(updates), state.entries(), 1, ranks);
  }
  fs::path rank_file() const { return folder / "rank-00000.h5"; }

  TemporaryFolder run;
  SampleState state;
  fs::path folder;
};

std::string contents(fs::path const& file) {
  std::ifstream in(file, std::ios::binary);
  std::ostringstream text;
  text << in.rdbuf();
  return text.str();
}

void write(fs::path const& file, std::string const& bytes) { std::ofstream(file, std::ios::binary) << bytes; }

void read_all(fs::path const& folder, SampleState& state) {
  state.clear();
  CheckpointReader const reader(folder);
  reader.read(state.entries());
}

std::string read_message(Saved& saved) {
  return message_of<Error>([&] { read_all(saved.folder, saved.state); });
}

std::string read_message(fs::path const& folder, SampleTensor const& tensor, Interval interval) {
  SampleState state;
  state.add(tensor, interval);
  return message_of<Error>([&] { read_all(folder, state); });
}

/// Enough that HDF5 indexes them.
std::vector<SampleTensor> few_tensors() {
  std::vector<SampleTensor> tensors{{"wte", {20, 30}}, {"h.0.ln.weight", {21}}};
  for (int i = 0; i < 10; ++i) tensors.push_back({"norm" + std::to_string(i), {3}});
  return tensors;
}

/// As a file of a version that did not write it.
void forget_generation(fs::path const& file) {
  hid_t const id = H5Fopen(file.c_str(), H5F_ACC_RDWR, H5P_DEFAULT);
  CHECK(H5Adelete(id, "generation") >= 0);
  CHECK(H5Fclose(id) >= 0);
}

bool same_info(CheckpointInfo const& a, CheckpointInfo const& b) {
  return a.counters.batches_seen == b.counters.batches_seen &&
         a.counters.updates_applied == b.counters.updates_applied &&
         a.counters.updates_skipped == b.counters.updates_skipped && a.deck == b.deck && a.ranks == b.ranks &&
         a.global_batch == b.global_batch && a.state_hash == b.state_hash && a.version == b.version &&
         a.text == b.text && a.loss_scale == b.loss_scale && a.pending_gradient_scale == b.pending_gradient_scale;
}

} // namespace

TEST_CASE("a file cut at any place is refused by name") {
  Saved saved(SampleState::whole(few_tensors()));
  for (char const* name : {"rank-00000.h5", "checkpoint.h5"}) {
    fs::path const file = saved.folder / name;
    std::string const whole = contents(file);
    for (std::size_t cut = 1; cut <= 64; ++cut) {
      std::size_t const left = whole.size() - 1 - (whole.size() - 1) * (cut - 1) / 63; // all but one byte … nothing
      write(file, whole.substr(0, left));
      auto const message = read_message(saved);
      INFO(left << ": " << message);
      REQUIRE(contains(message, {file.string(), "resume from another checkpoint"}));
    }
    write(file, whole);
  }
  CHECK(read_message(saved) == "");
}

// A flipped byte either is in a place that means nothing, or the file is refused: wrong data are never returned.
TEST_CASE("a flipped byte anywhere is refused or does no harm") {
  Saved saved(SampleState::whole(few_tensors()));
  CheckpointInfo const info = CheckpointReader(saved.folder).info();
  for (char const* name : {"rank-00000.h5", "checkpoint.h5"}) {
    fs::path const file = saved.folder / name;
    std::string const whole = contents(file);
    std::size_t refused = 0;
    std::size_t tried = 0;
    for (std::size_t at = 0; at < whole.size(); at += 11, ++tried) {
      std::string flipped = whole;
      flipped[at] = static_cast<char>(flipped[at] ^ (1 << at % 8));
      write(file, flipped);
      auto const message = read_message(saved);
      INFO(name << " at " << at << ": " << message);
      if (message.empty()) {
        REQUIRE(saved.state.first_wrong() == "");
        REQUIRE(same_info(CheckpointReader(saved.folder).info(), info));
      } else {
        REQUIRE(contains(message, {file.string()}));
        ++refused;
      }
    }
    INFO(name << ": " << refused << " of " << tried);
    CHECK(2 * refused > tried);
    write(file, whole);
  }
}

TEST_CASE("a flipped byte in the data is refused with the dataset, and only by those who read it") {
  Saved saved(SampleState::whole(few_tensors()));
  std::string whole = contents(saved.rank_file());
  auto const data = sample_bytes("h.0.ln.weight", "m", 0, 21 * 4);
  auto const at = whole.find(std::string(data.begin(), data.end()));
  REQUIRE(at != std::string::npos);
  whole[at + 83] = static_cast<char>(whole[at + 83] ^ 1);
  write(saved.rank_file(), whole);
  CHECK(
      contains(read_message(saved), {"'h.0.ln.weight/m'", saved.rank_file().string(), "elements 0 to 21", "checksum"}));
  CHECK(read_message(saved.folder, {"wte", {20, 30}}, {0, 600}) == "");
}

TEST_CASE("a checksum names the elements that are bad, and elements elsewhere can still be read") {
  SampleTensor const tensor{"long", {2'000'000}, DType::u8};
  Saved saved(SampleState::whole({tensor}));
  std::string whole = contents(saved.rank_file());
  auto const data = sample_bytes("long", "master", 1'999'000, 2'000'000);
  auto const at = whole.find(std::string(data.begin(), data.end()));
  REQUIRE(at != std::string::npos);
  whole[at] = static_cast<char>(whole[at] ^ 128);
  write(saved.rank_file(), whole);
  CHECK(contains(read_message(saved.folder, tensor, {1'500'000, 1'500'001}), {"elements 1048576 to 2000000"}));
  CHECK(read_message(saved.folder, tensor, {1'048'000, 1'048'576}) == "");
}

TEST_CASE("tensors of another model are refused by name") {
  Saved saved(SampleState::whole(few_tensors()));
  CHECK(
      contains(read_message(saved.folder, {"lost", {2}}, {0, 2}), {"no tensor 'lost/master'", saved.folder.string()}));
  CHECK(contains(read_message(saved.folder, {"wte", {600}}, {0, 2}),
                 {"'wte/master'", saved.rank_file().string(), "[20, 30]", "[600]"}));
  CHECK(contains(read_message(saved.folder, {"wte", {20, 30}, DType::bf16}, {0, 2}),
                 {"'wte/master'", saved.rank_file().string(), "is f32", "wants bf16); resume"}));
  CHECK(contains(read_message(saved.folder, {"wte", {20, 30}, DType::f16}, {0, 2}), {"is f32", "wants f16"}));
}

TEST_CASE("elements that no file holds are named") {
  SampleState state;
  state.add({"wte", {20, 30}}, {100, 200});
  Saved saved(std::move(state));
  CHECK(read_message(saved) == "");
  CHECK(contains(read_message(saved.folder, {"wte", {20, 30}}, {150, 300}),
                 {"'wte/master'", saved.folder.string(), "element 200 of the wanted 150 to 300", "rank-00000.h5"}));
  CHECK(contains(read_message(saved.folder, {"wte", {20, 30}}, {0, 101}), {"element 0 of the wanted 0 to 101"}));
}

TEST_CASE("a file that is lost, foreign or of another checkpoint is refused by name") {
  Saved saved(SampleState::whole(few_tensors()));
  SECTION("lost") {
    fs::remove(saved.rank_file());
    CHECK(contains(read_message(saved), {saved.rank_file().string(), "says that 1 ranks wrote it", "was it lost?"}));
  }
  SECTION("of another update") {
    Saved const other(SampleState::whole(few_tensors()), 11);
    fs::copy_file(other.rank_file(), saved.rank_file(), fs::copy_options::overwrite_existing);
    CHECK(contains(read_message(saved),
                   {saved.rank_file().string(), "another checkpoint", "update 11", "update 10", "version 2"}));
  }
  SECTION("an HDF5 file, but not of kozero") {
    fs::copy_file(fs::path(KOZERO_SOURCE_DIR) / "tests/reference/gpt2_a.h5", saved.folder / "checkpoint.h5",
                  fs::copy_options::overwrite_existing);
    CHECK(contains(read_message(saved), {"checkpoint.h5' is not a 'kozero checkpoint' file"}));
  }
}

TEST_CASE("entries of one name that are no interval of one tensor are refused when they are saved") {
  TemporaryFolder const run;
  auto const save_message = [&](SampleTensor const& first, Interval a, SampleTensor const& second, Interval b) {
    SampleState state;
    state.add(first, a);
    state.add(second, b);
    SelfRanks ranks;
    auto const message =
        message_of<Error>([&] { save_checkpoint(run.path(), sample_info(1), state.entries(), 1, ranks); });
    CHECK(fs::is_empty(run.path()));
    return message;
  };
  SampleTensor const w{"w", {9}};
  CHECK(contains(save_message(w, {2, 5}, w, {4, 9}),
                 {"update 1 is not saved: a rank holds", "elements 4 to 5 of 'w/master' twice"}));
  CHECK(contains(save_message(w, {0, 9}, w, {4, 6}), {"elements 4 to 6 of 'w/master' twice"}));
  CHECK(contains(save_message(w, {0, 9}, w, {0, 9}), {"elements 0 to 9 of 'w/master' twice"}));
  CHECK(contains(save_message(w, {6, 9}, w, {0, 5}), {"'w/master' on both sides of 5 to 6"}));
  CHECK(contains(save_message(w, {0, 5}, {"w", {3, 3}}, {5, 9}), {"'w/master' differ in shape or type"}));
  CHECK(contains(save_message(w, {0, 5}, {"w", {9}, DType::bf16}, {5, 9}), {"'w/master' differ in shape or type"}));
}

TEST_CASE("a path means the checkpoint that the user sees in it") {
  Saved const saved(SampleState::whole(few_tensors()));
  fs::path const run = saved.run.path();
  fs::path const folder = fs::canonical(saved.folder);
  for (fs::path const& path : {run, run / "checkpoints", run / "checkpoints" / "latest", saved.folder}) {
    CHECK(resolve_checkpoint(path) == folder);
  }
  SECTION("killed before the link was made: the newest complete one counts") {
    fs::remove(run / "checkpoints" / "latest");
    fs::create_directories(run / "checkpoints" / "step-00000011.partial");
    fs::create_directories(run / "checkpoints" / "step-00000012");
    CHECK(resolve_checkpoint(run) == folder);
  }
  SECTION("a link into nothing") {
    fs::remove(run / "checkpoints" / "latest");
    fs::create_directory_symlink("step-00000099", run / "checkpoints" / "latest");
    CHECK(resolve_checkpoint(run) == folder);
  }
}

TEST_CASE("the checkpoint that was saved last wins, whatever the link says") { // CASES 31
  TemporaryFolder const folder;
  fs::path const run = folder.path();
  fs::path const link = run / "checkpoints" / "latest";
  auto const save = [&](std::int64_t updates) {
    SelfRanks ranks;
    auto state = SampleState::whole({{"w", {9}}});
    return save_checkpoint(run, sample_info(updates), state.entries(), 4, ranks);
  };
  auto const lead = [&](fs::path const& checkpoint) {
    fs::remove(link);
    fs::create_directory_symlink(checkpoint.filename(), link);
  };
  auto const found = [&] { return resolve_checkpoint(run).filename(); };
  fs::path const at_10 = save(10);
  fs::path const at_20 = save(20);
  fs::path const at_30 = save(30);
  CHECK(found() == "step-00000030");
  SECTION("killed between a checkpoint and its link") {
    lead(at_20);
    CHECK(found() == "step-00000030");
  }
  SECTION("a run that went back") {
    save(15);
    CHECK(found() == "step-00000015");
    SECTION("killed before its link moved") {
      lead(at_30);
      CHECK(found() == "step-00000015");
    }
    SECTION("copied without links and times") {
      fs::remove(link);
      fs::last_write_time(at_10 / "checkpoint.h5", fs::file_time_type::clock::now());
      CHECK(found() == "step-00000015");
    }
    SECTION("and saved once more") {
      save(20);
      lead(at_30);
      CHECK(found() == "step-00000020");
    }
  }
  SECTION("files that do not say it, as older versions wrote them: the link, and else the highest") {
    for (fs::path const& checkpoint : {at_10, at_20, at_30}) forget_generation(checkpoint / "checkpoint.h5");
    lead(at_20);
    CHECK(found() == "step-00000020");
    fs::remove(link);
    CHECK(found() == "step-00000030");
    save(15);
    lead(at_30);
    CHECK(found() == "step-00000015");
  }
  SECTION("one that cannot be read is passed over, unless the run was there and has not gone on") {
    write(at_20 / "checkpoint.h5", "no HDF5");
    CHECK(found() == "step-00000030");
    lead(at_20);
    CHECK(found() == "step-00000030");
    lead(at_30);
    write(at_30 / "checkpoint.h5", "no HDF5");
    CHECK(found() == "step-00000030"); // who opens it says that it is damaged
  }
  SECTION("saved beside later ones that cannot be read for a while") {
    std::vector<std::string> kept;
    for (fs::path const& checkpoint : {at_20, at_30}) {
      kept.push_back(contents(checkpoint / "checkpoint.h5"));
      write(checkpoint / "checkpoint.h5", "no HDF5");
    }
    std::int64_t const generation = CheckpointReader(save(15)).info().generation;
    write(at_20 / "checkpoint.h5", kept[0]);
    write(at_30 / "checkpoint.h5", kept[1]);
    lead(at_30);
    CHECK(found() == "step-00000015");
    CHECK(CheckpointReader(save(10)).info().generation == generation + 1);
    CHECK(found() == "step-00000010");
  }
}

TEST_CASE("what the system refuses comes with its own remedy") { // CASES 43
  Saved saved(SampleState::whole(few_tensors()));
  SECTION("a folder that is gone wants no room") {
    TemporaryFolder const other;
    SelfRanks ranks;
    auto const message = message_of<Error>(
        [&] { save_checkpoint(other.file("gone"), sample_info(1), saved.state.entries(), 1, ranks); });
    CHECK(contains(message, {"No such file or directory", "; look who moved or removed it"}));
    CHECK(message.find("make room") == std::string::npos);
    CHECK(!fs::exists(other.file("gone")));
  }
  SECTION("what cannot be looked into is not an empty folder") {
    fs::remove_all(saved.run.path() + "/checkpoints");
    fs::create_symlink("checkpoints", saved.run.path() + "/checkpoints"); // round and round
    CHECK(contains(message_of<Error>([&] { RunFolder(saved.run.path()).holds_checkpoints(); }), {"checkpoints"}));
  }
}

TEST_CASE("a path without a checkpoint is refused with what was expected") {
  TemporaryFolder const folder;
  auto const message = [](fs::path const& path) { return message_of<Error>([&] { resolve_checkpoint(path); }); };
  fs::path const run = folder.path();
  CHECK(contains(message(run / "nowhere"), {"nowhere", "no such file or folder", "give the folder of a run"}));
  CHECK(contains(message(folder.write("text", "x")), {"text", "a file, not a folder"}));
  CHECK(contains(message(run), {run.string(), "not a checkpoint of kozero"}));
  fs::create_directories(run / "checkpoints");
  CHECK(contains(message(run), {"no checkpoint in", "start the run anew"}));
  fs::create_directories(run / "checkpoints" / "step-00000011.partial");
  CHECK(contains(message(run), {"no checkpoint in", "partial ones"}));
  fs::create_directories(run / "checkpoints" / "photos");
  CHECK(contains(message(run), {"not a checkpoint of kozero"}));
}
