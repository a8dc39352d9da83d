// Tensors as any reader of HDF5 sees them whole, over the files of all ranks.
#include "io/checkpoint_whole.hpp"

#include "core/error.hpp"
#include "io/checkpoint.hpp"
#include "io/checkpoint_sample.hpp"
#include "io/raw_file.hpp"
#include "support/catch.hpp"
#include "support/temporary_folder.hpp"

#include <optional>

using namespace kozero;
using namespace kozero::test;
namespace fs = std::filesystem;

namespace {

std::string name_in_file(StateEntry const& entry) {
  return (entry.kind == "master" ? "/parameters/" : "/optimizer/" + entry.kind + "/") + entry.name;
}

/// The first tensor that the file shows in another way than it was saved; empty if there is none.
std::string first_wrong(RawFile const& file, std::vector<SampleTensor> const& tensors) {
  SampleState whole = SampleState::whole(tensors);
  for (auto const& entry : whole.entries()) {
    std::string const name = name_in_file(entry);
    auto const shape = entry.shape.empty() ? std::vector<std::int64_t>{1} : entry.shape;
    if (!file.has(name) || file.shape(name) != shape) return name;
    std::int64_t const bytes = entry.interval.size() * size_of(entry.type);
    if (file.bytes(name) != sample_bytes(entry.name, entry.kind, 0, bytes)) return name;
  }
  return "";
}

/// Every element of the box, as its number in the flattened tensor.
std::vector<std::int64_t> elements_in(checkpoint::Box const& box, std::vector<std::int64_t> const& shape) {
  std::vector<std::int64_t> elements = {0};
  for (std::size_t d = 0; d < shape.size(); ++d) {
    std::vector<std::int64_t> finer;
    for (std::int64_t const element : elements) {
      for (std::int64_t i = 0; i < box.extent[d]; ++i) finer.push_back(element * shape[d] + box.begin[d] + i);
    }
    elements = finer;
  }
  return elements;
}

} // namespace

TEST_CASE("an interval of a tensor is a few boxes that follow each other") {
  std::vector<std::vector<std::int64_t>> const shapes = {{7}, {4, 5}, {1, 6}, {6, 1}, {3, 2, 4}, {2, 3, 1, 3}};
  for (auto const& shape : shapes) {
    std::int64_t size = 1;
    for (std::int64_t const extent : shape) size *= extent;
    for (std::int64_t begin = 0; begin <= size; ++begin) {
      for (std::int64_t end = begin; end <= size; ++end) {
        auto const boxes = checkpoint::boxes_of({begin, end}, shape);
        std::vector<std::int64_t> found, wanted;
        for (auto const& box : boxes) {
          for (std::int64_t const element : elements_in(box, shape)) found.push_back(element);
        }
        for (std::int64_t i = begin; i < end; ++i) wanted.push_back(i);
        REQUIRE(found == wanted);
        REQUIRE(boxes.size() <= 2 * shape.size() - 1);
      }
    }
  }
}

TEST_CASE("every tensor is there whole, in its shape, wherever the folder stands") {
  auto const world = make_world_ranks();
  std::optional<TemporaryFolder> folder;
  std::string run;
  if (world->rank() == 0) run = folder.emplace().path();
  world->broadcast(run, 0);
  for (auto const& tensors : {odd_tensors(), tiny_tensors()}) {
    auto state = SampleState::part(tensors, world->rank(), world->size());
    fs::path const saved = save_checkpoint(run, sample_info(1), state.entries(), {1}, *world);
    world->barrier();
    if (world->rank() == 0) {
      CHECK(first_wrong(RawFile(saved / "tensors.h5"), tensors) == "");
      fs::path const moved = fs::path(run) / "elsewhere";
      fs::rename(saved, moved);
      CHECK(first_wrong(RawFile(moved / "tensors.h5"), tensors) == "");
      fs::remove_all(moved);
    }
    world->barrier();
  }
}

TEST_CASE("where all ranks hold copies they are shown once") {
  auto const world = make_world_ranks();
  std::optional<TemporaryFolder> folder;
  std::string run;
  if (world->rank() == 0) run = folder.emplace().path();
  world->broadcast(run, 0);
  auto state = SampleState::whole(odd_tensors());
  fs::path const saved = save_checkpoint(run, sample_info(1), state.entries(), {1}, *world);
  world->barrier();
  if (world->rank() == 0) CHECK(first_wrong(RawFile(saved / "tensors.h5"), odd_tensors()) == "");
  world->barrier();
}

TEST_CASE("ranks with states of different tensors are told so, all of them") {
  auto const world = make_world_ranks();
  if (world->size() == 1) return;
  std::vector<checkpoint::TensorShare> own = {{"w", "m", {3}, DType::f32}};
  if (world->rank() + 1 == world->size()) own.front().shape = {4};
  auto const message = message_of<SharedError>([&] { checkpoint::gather_whole(own, *world); });
  CHECK(contains(message, {"ranks 0 and ", "different tensors"}));
}
