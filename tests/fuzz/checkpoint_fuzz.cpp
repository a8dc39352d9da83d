// Checkpoints whose files were cut and changed: read, with what was saved, or refused in words. The input is a list of
// changes to a sound checkpoint, so that what is tried is nearly one.
#include "fuzz/scratch.hpp"

#include "comm/ranks.hpp"
#include "core/runtime.hpp"
#include "io/checkpoint.hpp"

#include <array>
#include <cstring>
#include <numeric>
#include <sstream>

using namespace kozero;

namespace fs = std::filesystem;

namespace {

constexpr std::array files = {"checkpoint.h5", "rank-00000.h5"};
constexpr std::int64_t elements = 24;

std::array<std::string, 2> sound; // the files as they were saved
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
void change(std::array<std::string, 2>& changed, unsigned char const* data, std::size_t size) {
  for (std::size_t at = 0; at + 4 <= size; at += 4) {
    std::string& file = changed[data[at] % 2];
    std::size_t const place = static_cast<std::size_t>(data[at] / 2) << 16 | data[at + 1] << 8 | data[at + 2];
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

} // namespace

extern "C" int LLVMFuzzerInitialize(int* argc, char*** argv) {
  static Runtime const runtime(*argc, *argv);
  std::iota(saved.begin(), saved.end(), 0.5f);
  StateEntry const entry = entry_of(saved);
  auto const ranks = make_world_ranks();
  CheckpointInfo const info{.deck = "model: {width: 6}\n", .state_hash = "0", .version = "0"};
  fs::create_directories(fuzz::scratch() + "/run/checkpoints");
  fs::path const folder = save_checkpoint(fuzz::scratch() + "/run", info, std::span(&entry, 1), 1, *ranks);
  for (std::size_t i = 0; i < files.size(); ++i) sound[i] = read_file(folder / files[i]);
  return 0;
}

extern "C" int LLVMFuzzerTestOneInput(unsigned char const* data, std::size_t size) {
  fs::path const folder = fuzz::scratch() + "/changed";
  fs::create_directories(folder);
  auto changed = sound;
  change(changed, data, size);
  for (std::size_t i = 0; i < files.size(); ++i) fuzz::write(std::string("changed/") + files[i], changed[i]);
  fuzz::refused([&] { read_checkpoint(folder); });
  return 0;
}
