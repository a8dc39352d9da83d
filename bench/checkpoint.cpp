// Saving the state of GPT-2 124M, and taking the copy that is saved beside training, beside what moves as many bytes.
#include "io/checkpoint.hpp"
#include "bench/pair.hpp"
#include "comm/self_ranks.hpp"
#include "core/error.hpp"
#include "io/deck.hpp"
#include "model/families.hpp"
#include "support/temporary_folder.hpp"
#include "zero/state_snapshot.hpp"

#include <cstdlib>
#include <cstring>
#include <filesystem>

#include <fcntl.h>
#include <unistd.h>

namespace {

using namespace kozero;
using namespace kozero::bench;

constexpr char const* deck = "model: {size: gpt2-124m}\ndata: {train: none}\n";

/// Master, m and v of every tensor, in host memory.
class State {
public:
  State() {
    register_model_families();
    for (auto const& block : architecture_of(read_deck(deck, "the benchmark's", {}).config.model)->layout()) {
      for (auto const& tensor : block.tensors()) {
        for (char const* const kind : {"master", "m", "v"}) add(tensor, kind);
      }
    }
  }

  std::vector<StateEntry> const& entries() const { return entries_; }
  std::int64_t bytes() const { return bytes_; }

  /// As the engine holds it.
  std::vector<HeldState> held() const {
    std::vector<HeldState> held;
    for (auto const& entry : entries_) {
      held.push_back({.interval = entry.interval, .type = entry.type, .data = entry.data, .space = entry.space});
    }
    return held;
  }

private:
  void add(PlacedTensor const& tensor, char const* kind) {
    std::int64_t const size = tensor.interval().size();
    auto& memory = memory_.emplace_back(static_cast<std::size_t>(size));
    for (std::size_t i = 0; i < memory.size(); ++i) memory[i] = static_cast<float>(i) * 1e-3f;
    entries_.push_back({tensor.spec.name, kind, tensor.spec.shape, {0, size}, DType::f32, memory.data(), Space::host});
    bytes_ += size * size_of(DType::f32);
  }

  std::vector<std::vector<float>> memory_;
  std::vector<StateEntry> entries_;
  std::int64_t bytes_ = 0;
};

/// The state in one file, forced to disk.
void write_plainly(State const& state, std::string const& path) {
  int const file = ::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
  for (auto const& entry : state.entries()) {
    auto const* data = static_cast<char const*>(entry.data);
    auto left = static_cast<std::size_t>(entry.interval.size() * size_of(entry.type));
    while (left > 0) {
      ssize_t const written = ::write(file, data, std::min<std::size_t>(left, 4 << 20));
      KOZERO_REQUIRE(written > 0, "cannot write '{}'; set TMPDIR to a folder of the disk to measure", path);
      data += written;
      left -= static_cast<std::size_t>(written);
    }
  }
  KOZERO_REQUIRE(::fsync(file) == 0, "cannot force '{}' to disk; set TMPDIR to a folder of another disk", path);
  ::close(file);
}

/// Each begins with a disk that has nothing left to write.
void save(benchmark::State& bench) {
  State const state;
  test::TemporaryFolder const folder;
  SelfRanks ranks;
  CheckpointInfo info;
  info.counters.updates_applied = 1;
  std::string const plain = folder.file("plain");
  std::filesystem::path const checkpoints = folder.file("checkpoints");
  auto const clean = [&] {
    std::filesystem::remove(plain);
    std::filesystem::remove_all(checkpoints);
    ::sync();
  };
  measure_pair(
      bench, [&] { save_checkpoint(folder.path(), info, state.entries(), {1}, ranks); },
      [&] { write_plainly(state, plain); }, clean);
  bench.counters["bytes"] = static_cast<double>(state.bytes());
}

void snapshot(benchmark::State& bench) {
  State const state;
  Ledger ledger;
  auto const held = state.held();
  StateSnapshot copy(held, 0, ledger);
  std::vector<char> plain(static_cast<std::size_t>(state.bytes()));
  measure_pair(
      bench, [&] { copy.take(Lane(), held); },
      [&] {
        char* to = plain.data();
        for (auto const& entry : state.entries()) {
          auto const bytes = static_cast<std::size_t>(entry.interval.size() * size_of(entry.type));
          std::memcpy(to, entry.data, bytes);
          to += bytes;
        }
      });
  bench.counters["bytes"] = static_cast<double>(state.bytes());
}

BENCHMARK(save)->Name("checkpoint/save")->UseManualTime()->Iterations(7)->Unit(benchmark::kMillisecond);
BENCHMARK(snapshot)->Name("checkpoint/snapshot")->UseManualTime()->Unit(benchmark::kMillisecond);

} // namespace
