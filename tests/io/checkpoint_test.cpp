// Checkpoints by several ranks together.
#include "comm/ranks.hpp"
#include "core/error.hpp"
#include "io/checkpoint.hpp"
#include "io/checkpoint_save.hpp"
#include "io/checkpoint_world.hpp"
#include "support/catch.hpp"
#include "support/file_size_limit.hpp"

#include <optional>

using namespace kozero;
using namespace kozero::test;
namespace fs = std::filesystem;

namespace {

void read_all(fs::path const& folder, SampleState& state, ReaderPlace place = {}) {
  state.clear();
  CheckpointReader const reader(folder, place);
  reader.read(state.entries());
}

} // namespace

TEST_CASE("each rank reads back the bits that it wrote") {
  World world;
  for (auto const& tensors : {odd_tensors(), tiny_tensors(), std::vector<SampleTensor>{}}) {
    auto state = world.own(tensors);
    fs::path const folder = world.save(state, 100);
    CHECK(folder == world.checkpoints() / "step-00000100");
    read_all(folder, state, {world.rank(), world.ranks()});
    CHECK(state.first_wrong() == "");
    world.all().barrier();
  }
}

TEST_CASE("what a rank holds may be in several pieces, when it is saved and when it is read") {
  World world;
  for (auto const& tensors : {odd_tensors(), tiny_tensors()}) {
    auto state = world.own(tensors);
    auto pieces = state.in_pieces();
    fs::path const of_pieces = world.save(pieces, 1);
    read_all(of_pieces, state, {world.rank(), world.ranks()});
    CHECK(state.first_wrong() == "");
    read_all(of_pieces, pieces, {world.rank(), world.ranks()});
    CHECK(pieces.first_wrong() == "");
    auto whole = SampleState::whole(tensors);
    read_all(of_pieces, whole);
    CHECK(whole.first_wrong() == "");

    fs::path const of_one = world.save(state, 2);
    read_all(of_one, pieces, {world.rank(), world.ranks()});
    CHECK(pieces.first_wrong() == "");
    world.all().barrier();
  }
}

TEST_CASE("checksums go across the pieces in memory") {
  World world;
  std::int64_t const cuts[] = {0, 1, 1'048'576, 1'048'577, 2'000'000, 2'000'001, 3'500'001}; // a checksum is of 2^20
  std::int64_t const size = cuts[6];
  std::int64_t const begin = size * world.rank();
  SampleTensor const tensor{"long", {size * world.ranks()}, DType::u8};
  SampleState pieces;
  for (std::size_t i = 6; i-- > 0;) pieces.add(tensor, "m", {begin + cuts[i], begin + cuts[i + 1]});
  fs::path const folder = world.save(pieces, 1);
  SampleState whole;
  whole.add(tensor, "m", {begin, begin + size});
  read_all(folder, whole);
  CHECK(whole.first_wrong() == "");
  read_all(folder, pieces);
  CHECK(pieces.first_wrong() == "");
  world.all().barrier();
}

TEST_CASE("one process alone reads every tensor whole, and any interval of it") {
  World world;
  auto state = world.own(odd_tensors());
  fs::path const folder = world.save(state, 1);
  world.on_first([&] {
    auto whole = SampleState::whole(odd_tensors());
    read_all(folder, whole);
    CHECK(whole.first_wrong() == "");
    for (int readers : {2, 4, 7}) {
      for (int reader = 0; reader < readers; ++reader) {
        auto part = SampleState::part(odd_tensors(), reader, readers);
        read_all(folder, part, {reader, readers});
        CHECK(part.first_wrong() == "");
      }
    }
  });
}

TEST_CASE("tensors longer than one checksum are read whole and across its borders") {
  World world;
  std::int64_t const size = 3'500'001;
  SampleTensor const tensor{"long", {size}, DType::u8};
  auto state = world.own({tensor});
  fs::path const folder = world.save(state, 1);
  read_all(folder, state, {world.rank(), world.ranks()});
  CHECK(state.first_wrong() == "");
  for (Interval const part : {Interval{0, size}, Interval{1'048'575, 1'048'577}, Interval{size - 1, size}}) {
    SampleState some;
    some.add(tensor, part);
    read_all(folder, some);
    CHECK(some.first_wrong() == "");
  }
  world.all().barrier();
}

TEST_CASE("what all ranks hold copies of is written once") {
  World world;
  std::vector<SampleTensor> const tensors{{"w", {1000, 100}}, {"nothing", {0}}};
  auto whole = SampleState::whole(tensors);
  auto in_pieces = whole.in_pieces();
  for (SampleState* state : {&whole, &in_pieces}) {
    fs::path const folder = world.save(*state, 1);
    read_all(folder, *state);
    CHECK(state->first_wrong() == "");
    std::uintmax_t bytes = 0;
    for (auto const& item : fs::directory_iterator(folder)) bytes += item.file_size();
    std::uintmax_t const copy = 2 * 1000 * 100 * 4;
    CHECK(bytes > copy);
    CHECK(bytes < copy + 20'000 * (2 + static_cast<std::uintmax_t>(world.ranks())));
    world.all().barrier();
  }
}

TEST_CASE("a checkpoint says where the run stood") {
  World world;
  SampleState state;
  auto info = sample_info(7);
  info.deck = std::string(100'000, 'x') + "ü";
  info.state_hash.clear();
  auto const folder = save_checkpoint(world.run(), info, state.entries(), 1, world.all());
  CheckpointReader const reader(folder);
  CHECK(reader.info().counters.batches_seen == 10);
  CHECK(reader.info().counters.updates_applied == 7);
  CHECK(reader.info().counters.updates_skipped == 3);
  CHECK(reader.info().deck == info.deck);
  CHECK(reader.info().ranks == world.ranks());
  CHECK(reader.info().global_batch == 32);
  CHECK(reader.info().state_hash == "");
  CHECK(reader.info().version == "0.1.0");
  CHECK(reader.info().loss_scale == LossScaleState{32768, 17, 1});
  CHECK(reader.info().training_data == sample_info(1).training_data);
  CHECK(!reader.info().validation_data);
  CHECK(reader.info().pending_gradient_scale == 1.0 / 3);
  world.all().barrier();
}

TEST_CASE("a loss scale and a pending gradient each are in a checkpoint or not") {
  World world;
  SampleState state;
  for (bool const scaled : {false, true}) {
    for (bool const pending : {false, true}) {
      auto info = sample_info(7);
      if (!scaled) info.loss_scale.reset();
      if (!pending) info.pending_gradient_scale.reset();
      CheckpointReader const reader(save_checkpoint(world.run(), info, state.entries(), 1, world.all()));
      CHECK(reader.info().loss_scale == info.loss_scale);
      CHECK(reader.info().pending_gradient_scale == info.pending_gradient_scale);
      world.all().barrier();
    }
  }
}

TEST_CASE("the save fails on all ranks when one of them holds a tensor with a gap") {
  World world;
  auto state = world.own(tiny_tensors());
  if (world.rank() == world.ranks() - 1) {
    state.add({"gap", {9}}, {0, 2});
    state.add({"gap", {9}}, {3, 4});
  }
  auto const message = message_of<Error>([&] { world.save(state, 2); });
  INFO(message);
  CHECK(contains(message, {world.said_by(world.ranks() - 1), "'gap/master'", "2 to 3"}));
  world.all().barrier();
}

TEST_CASE("a save that is given up, or whose other work fails on one rank, is not saved on any") {
  World world;
  auto state = world.own(tiny_tensors());
  fs::path const before = world.save(state, 1);
  bool const fails_here = world.rank() == 0;
  auto const no_work = [] {};
  auto const fails = [&] {
    if (fails_here) throw std::bad_alloc();
  };
  auto const message = [&](std::function<void()> const& gets_on, std::function<void()> const& also) {
    CheckpointSave save(world.run(), sample_info(2), state.entries(), {1}, world.all());
    save.write(gets_on, also);
    return message_of<SharedError>([&] { save.commit([] { return std::string("a hash"); }); });
  };
  CHECK(contains(message(fails, no_work), {"update 2 is not saved", "bad_alloc"}));
  CHECK(contains(message(no_work, fails), {"update 2 is not saved", "bad_alloc"}));
  world.on_first([&] { CHECK(names_in(world.checkpoints()) == std::vector<std::string>{"latest", "step-00000001"}); });
}

TEST_CASE("a disk without room for a checkpoint is told before anything is written") { // CASES 37
  World world;
  auto state = world.own(tiny_tensors());
  fs::path const before = world.save(state, 1);
  std::int64_t const all = std::int64_t{1} << 55; // no disk has 2^57 bytes, and no memory these elements
  std::int64_t const each = all / world.ranks();
  Interval const mine{each * world.rank(), world.rank() + 1 == world.ranks() ? all : each * (world.rank() + 1)};
  state.entries().push_back({"huge", "m", {all}, mine, DType::f32, state.entries().front().data, Space::host});
  auto const message = message_of<Error>([&] { world.save(state, 2); });
  INFO(message);
  CHECK(contains(message, {"update 2 is not saved: " + world.said_by(0), world.checkpoints().string(), " left for ",
                           "make room"}));
  world.on_first([&] { CHECK(names_in(world.checkpoints()) == std::vector<std::string>{"latest", "step-00000001"}); });
}

TEST_CASE("whether a checkpoint is the latest is what rank 0 sees, on all ranks") { // CASES 46
  World world;
  auto state = world.own(tiny_tensors());
  fs::path const older = world.save(state, 1, 2);
  fs::path const newest = world.save(state, 2, 2);
  CHECK(is_latest_checkpoint(newest, world.run(), world.all()));
  CHECK_FALSE(is_latest_checkpoint(older, world.run(), world.all()));
  fs::path const nowhere = world.run() / "nowhere"; // as on a rank that does not see the folder yet, or no more
  bool const leads = world.rank() == 0;
  CHECK(is_latest_checkpoint(newest, leads ? world.run() : nowhere, world.all()));
  CHECK_FALSE(is_latest_checkpoint(newest, leads ? nowhere : world.run(), world.all()));
  world.all().barrier();
}

TEST_CASE("leftovers of killed runs go, and what is not ours stays") {
  World world;
  world.on_first([&] {
    fs::create_directories(world.checkpoints() / "step-00000003.partial" / "deep");
    std::ofstream(world.checkpoints() / "step-00000003.partial" / "checkpoint.h5") << "half";
    fs::create_directories(world.checkpoints() / "step-00000005.partial");
    std::ofstream(world.checkpoints() / "step-00000005.partial" / "rank-00099.h5") << "half";
    fs::create_directories(world.checkpoints() / "notes.partial");
    fs::create_directories(world.checkpoints() / "step-1");
  });
  auto state = world.own(tiny_tensors());
  fs::path const folder = world.save(state, 5);
  world.on_first([&] {
    CHECK(names_in(world.checkpoints()) ==
          std::vector<std::string>{"latest", "notes.partial", "step-00000003.partial", "step-00000005", "step-1"});
    CHECK(names_in(world.checkpoints() / "step-00000003.partial") == std::vector<std::string>{"deep"});
    CHECK(names_in(folder).size() == static_cast<std::size_t>(world.ranks()) + 2);
  });
}

TEST_CASE("a checkpoint of the same number is replaced") {
  World world;
  auto old_state = world.own(odd_tensors());
  fs::path const folder = world.save(old_state, 5);
  world.on_first([&] { std::ofstream(folder / "rank-00099.h5") << "of a larger run"; });
  auto state = world.own(tiny_tensors());
  CHECK(world.save(state, 5) == folder);
  read_all(folder, state);
  CHECK(state.first_wrong() == "");
  world.on_first([&] {
    CHECK(names_in(world.checkpoints()) == std::vector<std::string>{"latest", "step-00000005"});
    CHECK(names_in(folder).size() == static_cast<std::size_t>(world.ranks()) + 2);
  });
}

TEST_CASE("a disk that fills up on one rank fails the save on all ranks and leaves the earlier checkpoint") {
  World world;
  auto state = world.own(odd_tensors());
  fs::path const before = world.save(state, 1);
  int const victim = world.ranks() - 1;
  // In the metadata, between the two, and in the data.
  for (rlim_t const bytes : {10, 600, 3000, 5000}) {
    std::string message;
    {
      std::optional<FileSizeLimit> limit;
      if (world.rank() == victim) limit.emplace(bytes);
      message = message_of<Error>([&] { world.save(state, 2); });
    }
    INFO(message);
    CHECK(contains(message, {"the checkpoint of update 2 is not saved: " + world.said_by(victim), ": cannot ",
                             "step-00000002.partial", "File too large", "make room"}));
    world.on_first([&] {
      CHECK(names_in(world.checkpoints()) == std::vector<std::string>{"latest", "step-00000001"});
      CHECK(resolve_checkpoint(world.run()) == before);
    });
    read_all(before, state);
    CHECK(state.first_wrong() == "");
  }
  // The process has not suffered.
  read_all(world.save(state, 2), state);
  CHECK(state.first_wrong() == "");
  world.all().barrier();
}

TEST_CASE("a folder that cannot be made is a clear error on all ranks") {
  World world;
  world.on_first([&] { std::ofstream(world.checkpoints()) << "a file in the way"; });
  auto state = world.own(tiny_tensors());
  auto const message = message_of<Error>([&] { world.save(state, 2); });
  INFO(message);
  CHECK(contains(message, {"update 2 is not saved: " + world.said_by(0), world.checkpoints().string(), "run.dir"}));
}

TEST_CASE("the first rank that fails is named on all ranks") {
  World world;
  auto state = world.own(tiny_tensors());
  bool const fails = world.rank() == world.ranks() / 2 || world.rank() == world.ranks() - 1;
  float value = 0;
  if (fails) state.entries().push_back({"a/b", "m", {1}, {0, 1}, DType::f32, &value, Space::host});
  auto const message = message_of<Error>([&] { world.save(state, 2); });
  INFO(message);
  CHECK(contains(message, {world.said_by(world.ranks() / 2), "'a/b'", "cannot name a dataset"}));
  world.on_first([&] { CHECK(!fs::exists(world.checkpoints())); });
}
