// Checkpoints of format_version 1, as commit 4a3c0c7 wrote them (tests/reference/checkpoints-v1), read into the tensors
// of version 2 through a map that is written out here, and compared with what HDF5 alone finds in the files.
#include "comm/self_ranks.hpp"
#include "core/error.hpp"
#include "core/hash.hpp"
#include "io/checkpoint.hpp"
#include "io/checkpoint_sample.hpp"
#include "io/raw_file.hpp"
#include "support/catch.hpp"
#include "support/temporary_folder.hpp"

#include <cmath>
#include <map>
#include <numeric>
#include <optional>

using namespace kozero;
using namespace kozero::test;
namespace fs = std::filesystem;

namespace {

constexpr std::int64_t c = 9, vocabulary = 31, context = 7; // of all of them

struct Run {
  char const* name;
  int ranks;
  int layers = 1;
  bool tied = true;
  std::optional<DType> gradient = {}; // of the pending one
};

std::vector<Run> const runs{{"stage-0", 1},
                            {"stage-1", 2, 2},
                            {"stage-2-half-offload", 3},
                            {"stage-3-offload", 2},
                            {"delayed", 2, 1, true, DType::f32},
                            {"delayed-bf16", 3, 1, true, DType::bf16},
                            {"fp16", 2},
                            {"untied", 3, 1, false}};

fs::path folder_of(Run const& run) {
  return fs::path(KOZERO_SOURCE_DIR) / "tests/reference/checkpoints-v1" / run.name / "step-00000004";
}

/// The tensors of version 1 in model order.
std::vector<SampleTensor> former_model(Run const& run) {
  std::vector<SampleTensor> tensors{{"wte.weight", {vocabulary, c}}, {"wpe.weight", {context, c}}};
  for (int layer = 0; layer < run.layers; ++layer) {
    std::string const h = "h." + std::to_string(layer) + ".";
    for (SampleTensor const& tensor : std::vector<SampleTensor>{{"ln_1.weight", {c}},
                                                                {"ln_1.bias", {c}},
                                                                {"attn.qkv.weight", {3 * c, c}},
                                                                {"attn.qkv.bias", {3 * c}},
                                                                {"attn.proj.weight", {c, c}},
                                                                {"attn.proj.bias", {c}},
                                                                {"ln_2.weight", {c}},
                                                                {"ln_2.bias", {c}},
                                                                {"mlp.fc.weight", {4 * c, c}},
                                                                {"mlp.fc.bias", {4 * c}},
                                                                {"mlp.proj.weight", {c, 4 * c}},
                                                                {"mlp.proj.bias", {c}}}) {
      tensors.push_back({h + tensor.name, tensor.shape});
    }
  }
  tensors.push_back({"ln_f.weight", {c}});
  tensors.push_back({"ln_f.bias", {c}});
  if (!run.tied) tensors.push_back({"lm_head.weight", {vocabulary, c}});
  return tensors;
}

/// A former tensor as tensors of version 2, with what the map says of each.
struct Now {
  SampleTensor tensor;
  std::optional<FormerTensor> former;
};

std::vector<Now> now(SampleTensor const& former) {
  auto const named = [&](char const* end) { return former.name.ends_with(end); };
  auto const part = [&](char const* which, std::vector<std::int64_t> shape, std::int64_t begin) {
    std::string name = former.name;
    name.replace(name.find(".qkv."), 5, std::string(".") + which + ".");
    return Now{{name, std::move(shape)}, FormerTensor{former.name, former.shape, begin}};
  };
  if (named("attn.qkv.weight")) {
    return {part("q", {c, c}, 0), part("k", {c, c}, c * c), part("v", {c, c}, 2 * c * c)};
  }
  if (named("attn.qkv.bias")) return {part("q", {c}, 0), part("k", {c}, c), part("v", {c}, 2 * c)};
  if (named("proj.weight")) {
    return {{{former.name, {former.shape[1], former.shape[0]}},
             FormerTensor{former.name, former.shape, 0, FormerTensor::Order::transposed}}};
  }
  return {{former, {}}};
}

FormerTensors map_of(Run const& run) {
  FormerTensors map;
  for (auto const& former : former_model(run)) {
    for (auto const& [tensor, place] : now(former)) {
      if (place) map[tensor.name] = *place;
    }
  }
  return map;
}

/// A former tensor and kind, whole, out of all files.
std::vector<double> stored(Run const& run, SampleTensor const& tensor, std::string const& kind) {
  std::vector<double> values(static_cast<std::size_t>(tensor.size()), std::nan(""));
  std::size_t found = 0;
  for (int rank = 0; rank < run.ranks; ++rank) {
    RawFile const file(folder_of(run) / ("rank-0000" + std::to_string(rank) + ".h5"));
    std::string const dataset = "/" + tensor.name + "/" + kind;
    if (!file.has("/" + tensor.name) || !file.has(dataset)) continue;
    auto const part = file.numbers(dataset);
    auto const begin = file.attribute(dataset, "begin", 1)[0];
    std::copy(part.begin(), part.end(), values.begin() + begin);
    found += part.size();
  }
  CHECK(found == values.size());
  return values;
}

/// The same as the tensors of version 2 have it, by the rule in words: thirds, rows for columns.
std::map<std::string, std::vector<double>> expected_now(Run const& run, std::string const& kind) {
  std::map<std::string, std::vector<double>> expected;
  for (auto const& former : former_model(run)) {
    auto const values = stored(run, former, kind);
    auto const tensors = now(former);
    if (tensors.size() == 3) {
      auto const third = static_cast<std::ptrdiff_t>(values.size() / 3);
      for (int i = 0; i < 3; ++i) {
        expected[tensors[static_cast<std::size_t>(i)].tensor.name] = {values.begin() + i * third,
                                                                      values.begin() + (i + 1) * third};
      }
    } else if (former.name.ends_with("proj.weight")) {
      auto const out = static_cast<std::size_t>(former.shape[0]);
      auto const in = static_cast<std::size_t>(former.shape[1]);
      auto& exchanged = expected[former.name];
      for (std::size_t i = 0; i < in; ++i) {
        for (std::size_t o = 0; o < out; ++o) exchanged.push_back(values[o * in + i]);
      }
    } else {
      expected[former.name] = values;
    }
  }
  return expected;
}

/// Entries with memory of their own.
template <class T>
class Entries {
public:
  void add(SampleTensor const& tensor, std::string const& kind, Interval interval) {
    constexpr Space spaces[] = {Space::device, Space::host, Space::pinned};
    Space const space = spaces[entries.size() % 3];
    auto const& memory = memory_.emplace_back(space, interval.size() * size_of(dtype_of<T>));
    entries.push_back({tensor.name, kind, tensor.shape, interval, dtype_of<T>, memory.data(), space});
    set_values(entries.back(), std::vector<T>(static_cast<std::size_t>(interval.size()), T(-77.0f)));
  }

  std::vector<StateEntry> entries;

private:
  std::vector<AnyMemory> memory_;
};

/// Every tensor of today, each reader's part of it in two pieces.
template <class T>
void check_read(Run const& run, std::string const& kind, int readers) {
  CHECK(CheckpointReader(folder_of(run)).info().format_version == 1); // kozero is to call HDF5 first
  auto const expected = expected_now(run, kind);
  for (int reader = 0; reader < readers; ++reader) {
    Entries<T> read;
    for (auto const& former : former_model(run)) {
      for (auto const& [tensor, place] : now(former)) {
        Interval const own{tensor.size() * reader / readers, tensor.size() * (reader + 1) / readers};
        std::int64_t const cut = own.begin + own.size() / 3;
        read.add(tensor, kind, {cut, own.end});
        read.add(tensor, kind, {own.begin, cut});
      }
    }
    CheckpointReader const files(folder_of(run), {reader, readers});
    files.read(read.entries, map_of(run));
    for (StateEntry const& entry : read.entries) {
      INFO(run.name << ", " << kind << " of " << entry.name << " for " << reader << " of " << readers);
      std::vector<T> const values = values_of<T>(entry);
      std::size_t wrong = 0;
      for (std::int64_t i = 0; i < entry.interval.size(); ++i) {
        double const there = expected.at(entry.name)[static_cast<std::size_t>(entry.interval.begin + i)];
        wrong += static_cast<float>(values[i]) != static_cast<float>(T(static_cast<float>(there)));
      }
      CHECK(wrong == 0);
    }
  }
}

} // namespace

TEST_CASE("every element of an older checkpoint is where the map says, for any number of readers") {
  for (Run const& run : runs) {
    for (int const readers : {1, 2, 3, 5}) {
      for (char const* const kind : {"master", "m", "v"}) check_read<float>(run, kind, readers);
    }
  }
}

TEST_CASE("a pending gradient of an older checkpoint is read too, and converted") {
  for (Run const& run : runs) {
    CHECK(CheckpointReader(folder_of(run)).info().pending_gradient_scale.has_value() == run.gradient.has_value());
    if (!run.gradient) continue;
    for (int const readers : {1, 3}) {
      check_read<float>(run, "gradient", readers);
      check_read<bf16>(run, "gradient", readers);
    }
  }
}

TEST_CASE("what is read of an older checkpoint has the hash that it was written with, by the old definition") {
  for (Run const& run : runs) {
    auto const model = former_model(run);
    Entries<float> read;
    for (auto const& former : model) {
      for (char const* const kind : {"master", "m", "v"}) {
        for (auto const& [tensor, place] : now(former)) read.add(tensor, kind, {0, tensor.size()});
      }
    }
    CheckpointReader const files(folder_of(run));
    files.read(read.entries, map_of(run));

    Hash128 hash; // of all tensors in model order, of each master, m and v
    std::size_t entry = 0;
    for (auto const& former : model) {
      for (int kind = 0; kind < 3; ++kind) {
        std::vector<float> values;
        for (std::size_t part = 0; part < now(former).size(); ++part, ++entry) {
          auto const part_values = values_of(read.entries[entry]);
          values.insert(values.end(), part_values.begin(), part_values.end());
        }
        if (former.name.ends_with("proj.weight")) { // back to [out, in]
          auto const out = static_cast<std::size_t>(former.shape[0]);
          std::vector<float> exchanged;
          for (std::size_t o = 0; o < out; ++o) {
            for (std::size_t i = 0; i < values.size() / out; ++i) exchanged.push_back(values[i * out + o]);
          }
          values = exchanged;
        }
        hash.update(values.data(), values.size() * sizeof(float));
      }
    }
    INFO(run.name);
    CHECK(hash.hex() == files.info().state_hash);
  }
}

TEST_CASE("an older checkpoint says where its run stood") {
  for (Run const& run : runs) {
    INFO(run.name);
    CheckpointInfo const info = CheckpointReader(folder_of(run)).info();
    CHECK(info.counters.batches_seen == (run.gradient ? 5 : 4));
    CHECK(info.counters.updates_applied == 4);
    CHECK(info.counters.updates_skipped == 0);
    CHECK(info.ranks == run.ranks);
    CHECK(info.global_batch == 6);
    CHECK(info.version == "0.1.0");
    CHECK_FALSE(info.text);
    bool const scaled = std::string(run.name) == "fp16"; // doubled after the third update
    CHECK(info.loss_scale == (scaled ? std::optional(LossScaleState{2048, 1, 0}) : std::nullopt));
  }
}

TEST_CASE("a transposed matrix of several tiles is read from several writers, also where it was a part of another") {
  constexpr std::int64_t in = 1001, out = 997, behind = 500; // behind it there were 500 rows of something else
  std::vector<float> whole(static_cast<std::size_t>((out + behind) * in));
  std::iota(whole.begin(), whole.end(), 0.0f); // exact below 2^24
  auto const size = static_cast<std::int64_t>(whole.size());
  SampleTensor const stood{"w", {out + behind, in}};
  TemporaryFolder const folder;
  SelfRanks ranks;
  std::vector<StateEntry> const entries{{"w", "m", stood.shape, {0, size}, DType::f32, whole.data(), Space::host}};
  auto const path = save_checkpoint(folder.path(), {}, entries, 1, ranks);
  CheckpointReader const files(path);
  for (std::int64_t const row : {std::int64_t{0}, behind}) {
    FormerTensors const map{{"now", {"w", stood.shape, row * in, FormerTensor::Order::transposed}}};
    Entries<float> read;
    std::int64_t const cuts[] = {0, 1, out - 1, out, 3 * out + 5, in * out / 2, in * out - 1, in * out};
    for (std::size_t i = 0; i + 1 < std::size(cuts); ++i) read.add({"now", {in, out}}, "m", {cuts[i], cuts[i + 1]});
    files.read(read.entries, map);
    std::size_t wrong = 0;
    for (StateEntry const& entry : read.entries) {
      std::vector<float> const values = values_of(entry);
      for (std::int64_t at = entry.interval.begin; at < entry.interval.end; ++at) {
        std::int64_t const expected = (row + at % out) * in + at / out;
        wrong += values[at - entry.interval.begin] != static_cast<float>(expected);
      }
    }
    CHECK(wrong == 0);
  }
}

TEST_CASE("a former tensor that is lost or of another shape is refused by its own name") {
  Run const& run = runs[0];
  CheckpointReader const files(folder_of(run));
  auto const message = [&](SampleTensor const& tensor, FormerTensor const& former) {
    Entries<float> read;
    read.add(tensor, "m", {0, tensor.size()});
    return message_of<Error>([&] { files.read(read.entries, {{tensor.name, former}}); });
  };
  using enum FormerTensor::Order;
  CHECK(contains(message({"now", {c, c}}, {"h.7.attn.qkv.weight", {3 * c, c}, 0, as_stored}),
                 {"'h.7.attn.qkv.weight/m'"}));
  CHECK(contains(message({"now", {c, c}}, {"h.0.attn.qkv.weight", {c, 3 * c}, 0, as_stored}),
                 {"'h.0.attn.qkv.weight/m'", "[27, 9]", "[9, 27]"}));
  CHECK(contains(message({"now", {4 * c, c}}, {"h.9.mlp.proj.weight", {c, 4 * c}, 0, transposed}),
                 {"'h.9.mlp.proj.weight/m'"}));
  CHECK(contains(message({"now", {4 * c, c}}, {"h.0.mlp.proj.weight", {4 * c, c}, 0, transposed}),
                 {"[9, 36]", "[36, 9]"}));
}

TEST_CASE("a rank that has nothing of a transposed tensor does not read it") {
  Entries<float> read;
  read.add({"nowhere", {3, 5}}, "m", {0, 0});
  FormerTensors const map{{"nowhere", {"neither", {5, 3}, 0, FormerTensor::Order::transposed}}};
  CheckpointReader(folder_of(runs[0])).read(read.entries, map);
  CHECK(read.entries.size() == 1);
}
