// Checkpoints whose files were cut and changed: read, with what was saved, or refused in words, and looked at by all
// that `kozero checkpoint` has. The input is a list of changes to a sound checkpoint, so that what is tried is nearly
// one.
#include "fuzz/scratch.hpp"

#include "comm/ranks.hpp"
#include "core/runtime.hpp"
#include "io/checkpoint.hpp"
#include "io/checkpoint_diff.hpp"
#include "io/checkpoint_list.hpp"
#include "io/checkpoint_verify.hpp"

#include <array>
#include <cstring>
#include <numeric>
#include <sstream>

using namespace kozero;

namespace fs = std::filesystem;

namespace {

constexpr std::array files = {"checkpoint.h5", "rank-00000.h5", "tensors.h5"};
constexpr std::int64_t elements = 24;

std::array<std::string, files.size()> sound; // the files as they were saved
fs::path sound_folder;
std::vector<float> saved(elements);

std::string read_file(fs::path const& path) {
  std::ostringstream text;
  text << std::ifstream(path, std::ios::binary).rdbuf();
  return text.str();
}

StateEntry entry_of(std::vector<float>& values) {
  return {"w", "master", {4, 6}, {0, elements}, DType::f32, values.data(), Space::host};
}

/// Each change is four bytes: file and upper bits of the place, place, value; a value of a place past the end cuts.
void change(std::array<std::string, files.size()>& changed, unsigned char const* data, std::size_t size) {
  for (std::size_t at = 0; at + 4 <= size; at += 4) {
    std::string& file = changed[data[at] % files.size()];
    std::size_t const place =
        static_cast<std::size_t>(data[at] / files.size()) << 16 | data[at + 1] << 8 | data[at + 2];
    if (place < file.size()) {
      file[place] = static_cast<char>(data[at + 3]);
    } else {
      file.resize(place % (file.size() + 1));
    }
  }
}

void read_checkpoint(fs::path const& folder) {
  std::vector<float> values(elements);
  StateEntry const entry = entry_of(values);
  CheckpointReader const reader(folder);
  reader.read(entry);
  if (std::memcmp(values.data(), saved.data(), elements * sizeof(float)) != 0) std::abort(); // checksums hold
}

/// What is found whole can be read.
void verify(fs::path const& folder) {
  std::array const expected = {ExpectedArray{"w", "master"}};
  auto const verdict = verify_checkpoint(folder, expected, [](std::int64_t, std::int64_t) {});
  bool const is_refused = fuzz::refused([&] { read_checkpoint(folder); });
  if (verdict.faults.empty() && is_refused) std::abort();
}

void compare(fs::path const& folder) {
  std::array const arrays = {ComparedArray{"w", "master", {4, 6}}};
  CheckpointReader const a(sound_folder), b(folder);
  auto const difference = compare_checkpoints({a, {}}, {b, {}}, arrays, [](std::int64_t) {});
  if (difference.different != 0) std::abort();
}

void list(fs::path const& run) {
  if (list_checkpoints(run).size() != 1) std::abort();
  prune_checkpoints(run, Retention(1), Prune::dry_run);
}

} // namespace

extern "C" int LLVMFuzzerInitialize(int* argc, char*** argv) {
  static Runtime const runtime(*argc, *argv);
  std::iota(saved.begin(), saved.end(), 0.5f);
  StateEntry const entry = entry_of(saved);
  auto const ranks = make_world_ranks();
  CheckpointInfo const info{.deck = "model: {width: 6}\n", .state_hash = "0", .version = "0"};
  fs::create_directories(fuzz::scratch() + "/run/checkpoints");
  sound_folder = save_checkpoint(fuzz::scratch() + "/run", info, std::span(&entry, 1), 1, *ranks);
  for (std::size_t i = 0; i < files.size(); ++i) sound[i] = read_file(sound_folder / files[i]);
  return 0;
}

extern "C" int LLVMFuzzerTestOneInput(unsigned char const* data, std::size_t size) {
  std::string const name = "changed/checkpoints/step-00000000";
  fs::path const folder = fuzz::scratch() + "/" + name;
  fs::create_directories(folder);
  auto changed = sound;
  change(changed, data, size);
  for (std::size_t i = 0; i < files.size(); ++i) fuzz::write(name + "/" + files[i], changed[i]);
  fuzz::refused([&] { verify(folder); });
  fuzz::refused([&] { compare(folder); });
  fuzz::refused([&] { list(fuzz::scratch() + "/changed"); });
  return 0;
}
