// The hash of the state against one computed from the page's definition (doc/numerics.md) with all tensors at hand.
#include "support/catch.hpp"
#include "support/device_array.hpp"
#include "support/small_run.hpp"
#include "support/temporary_folder.hpp"
#include "support/world.hpp"

#include "core/hash.hpp"
#include "model/families.hpp"
#include "train/state_entries.hpp"
#include "zero/engine.hpp"
#include "zero/state_hash.hpp"
#include "zero/state_snapshot.hpp"

#include <bit>

using namespace kozero;
using namespace kozero::test;

namespace {

constexpr std::int64_t chunk = 65536;
constexpr char const* kinds[] = {"master", "m", "v"};

TensorSpec tensor(std::string name, std::vector<std::int64_t> shape) { return {std::move(name), std::move(shape), {}}; }

/// Tensors of many sizes around that of a chunk. The first block of a layout for N ranks is cut at edges of chunks.
ModelLayout layout_for(int ranks) {
  std::vector<std::vector<TensorSpec>> const blocks = {
      {tensor("even", {ranks, 2 * chunk})},
      {tensor("bias", {7}), tensor("long", {3, chunk + 11}), tensor("one", {1}), tensor("chunk", {2, chunk / 2})},
      {tensor("short", {chunk - 1}), tensor("longer", {chunk + 1}), tensor("table", {5, 5})},
      {tensor("single", {1})},
  };
  ModelLayout layout;
  for (auto const& specs : blocks) layout.emplace_back("block " + std::to_string(layout.size()), specs);
  return layout;
}

std::vector<UnitUses> uses_of(ModelLayout const& layout) {
  std::vector<UnitUses> uses;
  for (int b = 0; b < static_cast<int>(layout.size()); ++b) uses.push_back({{b}, {b}, {b}});
  return uses;
}

/// What the state is filled with: any bits, NaN among them.
float value_of(std::string const& tensor, std::string const& kind, std::int64_t element) {
  std::uint32_t number = kind == "master" ? 1 : kind == "m" ? 2 : 3;
  for (char const letter : tensor) number = number * 31 + static_cast<unsigned char>(letter);
  return std::bit_cast<float>(static_cast<std::uint32_t>(element) * 2654435761u + number * 40503u);
}

void fill(std::vector<StateEntry> const& state) {
  for (auto const& entry : state) {
    std::vector<float> values;
    for (std::int64_t i = entry.interval.begin; i < entry.interval.end; ++i) {
      values.push_back(value_of(entry.name, entry.kind, i));
    }
    set_values(entry, values);
  }
}

/// The definition, word by word, for a state that was filled as above.
std::string expected_hash(ModelLayout const& layout) {
  Hash128 all;
  for (auto const& block : layout) {
    for (auto const& tensor : block.tensors()) {
      for (std::string const kind : kinds) {
        for (std::int64_t begin = 0; begin < tensor.spec.size(); begin += chunk) {
          std::vector<float> values;
          for (std::int64_t i = begin; i < std::min(begin + chunk, tensor.spec.size()); ++i) {
            values.push_back(value_of(tensor.spec.name, kind, i));
          }
          Hash128 one;
          one.update(values.data(), values.size() * sizeof(float));
          std::string const digits = one.hex();
          for (std::size_t d = 0; d < digits.size(); d += 2) {
            auto const byte = static_cast<unsigned char>(std::stoi(digits.substr(d, 2), nullptr, 16));
            all.update(&byte, 1);
          }
        }
      }
    }
  }
  return all.hex();
}

/// Every stage, with no offload and where it may be with offload of some and of all.
std::vector<Sharding> all_shardings() {
  std::vector<Sharding> shardings = {{.zero = {0}, .offload = {}}};
  for (std::int64_t stage = 1; stage <= 3; ++stage) {
    shardings.push_back({.zero = {stage}, .offload = {}});
    for (double const ratio : {0.5, 1.0}) {
      shardings.push_back({.zero = {stage}, .offload = {.optimizer = OffloadTarget::host, .ratio = ratio}});
    }
  }
  return shardings;
}

template <class T>
void check_engines(ModelLayout const& layout, std::vector<UnitUses> const& uses, Group const& group) {
  std::string const expected = expected_hash(layout);
  for (Sharding const& sharding : all_shardings()) {
    INFO("stage " << sharding.zero.stage << ", ratio " << sharding.offload.ratio);
    Ledger ledger;
    Engine<T> engine(Plan(sharding, group.rank(), group.size()), layout, uses, group, ledger);
    fill(state_entries(layout, engine.state()));
    CHECK(engine.state_hash(Lane()) == expected);
  }
}

/// Of an element of this rank's state, if it has it.
void flip(std::vector<StateEntry> const& state, std::string const& name, std::string const& kind, std::int64_t at,
          int bit) {
  for (auto const& entry : state) {
    bool const here = entry.name == name && entry.kind == kind && entry.interval.begin <= at && at < entry.interval.end;
    if (!here) continue;
    Site const element{static_cast<float*>(entry.data) + (at - entry.interval.begin), entry.space};
    write_values(element, std::vector{read_values<std::uint32_t>(element, 1)[0] ^ (1u << bit)});
  }
}

} // namespace

TEST_CASE_METHOD(World, "the hash is that of the definition at every stage and offload, on any number of ranks") {
  for (int const ranks : {world.size(), 3}) { // where edges of shards and chunks fall together, and elsewhere
    ModelLayout const layout = layout_for(ranks);
    check_engines<float>(layout, uses_of(layout), world);
  }
  for (auto const& model : {odd_model(), tiny_model()}) {
    auto const architecture = architecture_of(model);
    check_engines<bf16>(architecture->layout(), architecture->uses(), world);
    check_engines<float>(architecture->layout(), architecture->uses(), world);
  }
}

TEST_CASE_METHOD(World, "state that is staged for the host has the same hash as state that it reaches") {
  ModelLayout const layout = layout_for(4);
  std::string const expected = expected_hash(layout);
  for (Sharding const& sharding : all_shardings()) {
    Plan const plan(sharding, world.rank(), world.size());
    OptimizerState const state(plan, layout, {}, ledger);
    fill(state_entries(layout, state.held()));
    StateHash const staged(plan, layout, state.held(), world.ranks, ledger, StateHash::DeviceAccess::staged);
    CHECK(staged.hex(Lane()) == expected);
  }
}

TEST_CASE_METHOD(World, "what was prepared of a copy has the hash of the state that was copied") {
  ModelLayout const layout = layout_for(world.size());
  for (Sharding const& sharding : all_shardings()) {
    Plan const plan(sharding, world.rank(), world.size());
    OptimizerState const state(plan, layout, {}, ledger);
    auto const held = state_entries(layout, state.held());
    fill(held);
    StateSnapshot snapshot(state.held(), 0, ledger);
    StateHash const hash(plan, layout, snapshot.copies(), world.ranks, ledger, StateHash::DeviceAccess::reached);
    snapshot.take(Lane(), state.held());
    for (auto const& entry : held) {
      if (!entry.interval.empty()) flip({entry}, entry.name, entry.kind, entry.interval.begin, 3);
    }
    std::int64_t asked = 0;
    auto const digests = hash.prepare([&] { ++asked; });
    CHECK(asked > 0);
    CHECK(hash.hex(Lane(), digests) == expected_hash(layout));
  }
}

TEST_CASE_METHOD(World, "a flipped bit of any tensor and kind gives another hash, on all ranks") {
  ModelLayout const layout = layout_for(2);
  Sharding const sharding{.zero = {2}, .offload = {.optimizer = OffloadTarget::host, .ratio = 0.5}};
  Engine<float> engine(Plan(sharding, world.rank(), world.size()), layout, uses_of(layout), world, ledger);
  auto const state = state_entries(layout, engine.state());
  fill(state);
  std::string const before = engine.state_hash(Lane());
  int bit = 0;
  for (auto const& block : layout) {
    for (auto const& tensor : block.tensors()) {
      std::int64_t const size = tensor.spec.size();
      for (char const* kind : kinds) {
        for (std::int64_t const at :
             {std::int64_t{0}, std::min(chunk, size) - 1, std::min(chunk, size - 1), size - 1}) {
          INFO(tensor.spec.name << ' ' << kind << ' ' << at);
          bit = (bit + 11) % 32;
          flip(state, tensor.spec.name, kind, at, bit);
          CHECK(engine.state_hash(Lane()) != before);
          flip(state, tensor.spec.name, kind, at, bit);
        }
      }
    }
  }
  CHECK(engine.state_hash(Lane()) == before);
}

TEST_CASE_METHOD(World, "ranks whose copies differ in a bit refuse, all of them") {
  ModelLayout const layout = layout_for(2);
  Engine<float> engine(Plan({.zero = {0}, .offload = {}}, world.rank(), world.size()), layout, uses_of(layout), world,
                       ledger);
  auto const state = state_entries(layout, engine.state());
  fill(state);
  if (world.rank() == world.size() - 1) flip(state, "longer", "v", chunk, 31);
  if (world.size() == 1) {
    CHECK(engine.state_hash(Lane()) != expected_hash(layout));
  } else {
    CHECK(contains(message_of<SharedError>([&] { engine.state_hash(Lane()); }), {"copies of the model differ"}));
  }
}

TEST_CASE_METHOD(World, "a hash moves digests and the edges of shards, and nothing else") {
  int const ranks = world.size();
  auto const received = [&](ModelLayout const& layout, std::int64_t stage) {
    Engine<float> engine(Plan({.zero = {stage}, .offload = {}}, world.rank(), ranks), layout, uses_of(layout), world,
                         ledger);
    fill(state_entries(layout, engine.state()));
    world.ranks.traffic() = TrafficLedger();
    engine.state_hash(Lane());
    CHECK(world.ranks.traffic()[Traffic::parameters].bytes == 0);
    CHECK(world.ranks.traffic()[Traffic::gradients].bytes == 0);
    return world.ranks.traffic()[Traffic::control].bytes;
  };
  // Shards of two chunks: of each kind two digests, and a length, of every other rank.
  ModelLayout const even = {BlockLayout("even", {tensor("even", {ranks, 2 * chunk})})};
  CHECK(received(even, 1) == (ranks - 1) * (3 * 2 * 16 + 8));
  CHECK(received(even, 0) == (ranks - 1) * (32 + 8)); // the hash itself
  // Shards of a chunk and a half: those of even ranks begin with a chunk, and end in the middle of their second one.
  ModelLayout const apart = {BlockLayout("apart", {tensor("apart", {2 * ranks, 3 * chunk / 4})})};
  std::int64_t const edge = world.rank() % 2 == 0 && world.rank() + 1 < ranks ? chunk / 2 : 0;
  CHECK(received(apart, 1) == 3 * 4 * edge + (ranks - 1) * (3 * 2 * 16 + 8));
}
