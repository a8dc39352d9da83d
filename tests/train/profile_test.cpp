// What run.profile writes, and that it changes nothing.
#include "support/catch.hpp"
#include "support/training.hpp"

#if KOZERO_EMULATED
#include "core/emulated/policy.hpp"
#endif

#include <algorithm>
#include <array>
#include <chrono>
#include <functional>
#include <map>
#include <thread>

using namespace kozero;
using namespace kozero::test;

namespace {

struct Outcome {
  std::vector<Json> lines;
  std::vector<MemoryRow> memory;
  std::map<std::string, std::int64_t> received; // bytes, by purpose
  double early_gradients = 0;                   // the share of their bytes that nobody had to wait for
};

Outcome outcome_of(Config const& config, std::string const& folder, Group const& world) {
  Ledger ledger;
  std::filesystem::create_directories(folder);
  TrafficLedger const before = world.ranks.traffic();
  train({.config = config,
         .resolved_deck = "",
         .corpus = open_corpus(config.data, config.model.vocabulary, config.model.context),
         .batch = batch_shape(config.batch, world.size()),
         .folder = folder},
        world, ledger);
  TrafficLedger const after = world.ranks.traffic();
  world.ranks.barrier();
  Outcome outcome{Metrics(folder).lines, ledger.peak_rows(), {}};
  for (auto const purpose : {Traffic::parameters, Traffic::gradients}) {
    outcome.received[name_of(purpose)] = after[purpose].bytes - before[purpose].bytes;
  }
  auto const [reduced, as_before] = std::pair(after[Traffic::gradients], before[Traffic::gradients]);
  outcome.early_gradients = static_cast<double>(reduced.early_bytes - as_before.early_bytes) /
                            static_cast<double>(std::max<std::int64_t>(reduced.bytes - as_before.bytes, 1));
  return outcome;
}

/// What happened on one rank, from its file.
struct Trace {
  struct Span {
    std::string name;
    double begin = 0; // microseconds
    double end = 0;
  };
  std::map<int, std::vector<Span>> tracks; // but messages
  std::vector<Span> messages;
  std::map<std::string, std::int64_t> bytes; // of messages, by purpose
  std::map<std::string, std::int64_t> times; // that a name is there, all together

  Trace(std::string const& folder, int rank) {
    std::ifstream file(folder + fmt::format("/profile/rank-{:03}.json", rank));
    Json const json = Json::parse(file);
    CHECK(json.at("otherData").at("dropped") == 0);
    std::map<int, Span> open;
    for (auto const& event : json.at("traceEvents")) {
      CHECK(event.at("pid") == rank);
      std::string const phase = event.at("ph");
      if (phase == "M") continue;
      Span const span{event.at("name"), event.at("ts"), event.at("ts")};
      if (phase == "X") {
        auto& spans = tracks[event.at("tid")];
        spans.push_back(span);
        spans.back().end += event.at("dur").get<double>();
        ++times[span.name];
      } else if (phase == "b") {
        open[event.at("id")] = span;
        ++times[span.name];
        bytes[event.at("args").at("purpose")] += event.at("args").at("bytes").get<std::int64_t>();
        CHECK(event.at("args").at("early_bytes") <= event.at("args").at("bytes"));
      } else {
        REQUIRE(phase == "e");
        Span& message = open.at(event.at("id"));
        message.end = span.end;
        messages.push_back(message);
      }
    }
    CHECK(messages.size() == open.size());
  }
};

constexpr double rounding = 0.01; // of a time in microseconds

/// Spans that overlap without one being in the other.
std::int64_t torn(std::vector<Trace::Span> spans) {
  std::ranges::sort(
      spans, [](auto const& a, auto const& b) { return a.begin != b.begin ? a.begin < b.begin : a.end > b.end; });
  std::int64_t found = 0;
  std::vector<double> ends;
  for (auto const& span : spans) {
    while (!ends.empty() && ends.back() <= span.begin + rounding) ends.pop_back();
    found += !ends.empty() && span.end > ends.back() + rounding ? 1 : 0;
    ends.push_back(span.end);
  }
  return found;
}

} // namespace

TEST_CASE_METHOD(RunFixture, "a profile changes nothing, nests on each track, and has every visit and all traffic") {
  config.batch.accumulate = 2;
  config.run.updates = 4;
  for (std::int64_t stage = 0; stage <= 3; ++stage) {
    for (bool const delayed : {false, true}) {
      if (delayed && stage == 0) continue;
      CAPTURE(stage, delayed);
      config.zero.stage = stage;
      config.offload = {};
      if (delayed) config.offload = {.optimizer = OffloadTarget::host, .delayed_update = {2}};
      std::string const name = fmt::format("{}{}", stage, delayed ? "delayed" : "");
      config.run.profile = false;
      Outcome const without = outcome_of(config, folder.file("without" + name), world);
      CHECK(!std::filesystem::exists(folder.file("without" + name) + "/profile"));
      config.run.profile = true;
      Outcome const with = outcome_of(config, folder.file("with" + name), world);
      CHECK(with.lines == without.lines);
      CHECK(with.memory == without.memory);
      CHECK(with.received == without.received);

      Trace const trace(folder.file("with" + name), world.rank());
      for (auto const& [track, spans] : trace.tracks) {
        CAPTURE(track);
        CHECK(torn(spans) == 0);
      }
      auto const times = [&](std::string const& wanted) {
        return trace.times.contains(wanted) ? trace.times.at(wanted) : 0;
      };
      for (auto const& block : architecture_of(config.model)->layout()) {
        for (char const* what : {"forward ", "backward ", "reduce "}) CHECK(times(what + block.name()) == 2 * 4);
      }
      CHECK(times("norm") == 4);
      CHECK(times("adamw") == 4);
      CHECK((times("adamw tile") > 0) == delayed);
      CHECK((times("down") > 0) == delayed);
      if (world.size() == 1) continue;
      std::int64_t const reductions = 4 * reductions_a_batch(config, world.size());
      CHECK(times(stage == 0 ? "all_reduce gradients" : "reduce_scatter gradients") == reductions);
      for (auto const& [purpose, bytes] : with.received) {
        CAPTURE(purpose);
        CHECK((trace.bytes.contains(purpose) ? trace.bytes.at(purpose) : 0) == bytes);
      }
    }
  }
}

TEST_CASE_METHOD(RunFixture, "a profile shows reductions under way while the next unit's backward pass begins") {
  if (world.size() == 1) return;
#if KOZERO_EMULATED // the other policies may let a device be that late that nothing overlaps
  auto const before = emulated::policy();
  emulated::set_policy({.order = emulated::Policy::Order::immediate});
#endif
  config.zero.stage = 2;
  config.run.updates = 3;
  config.run.profile = true;
  outcome_of(config, folder.file("run"), world);
  Trace const trace(folder.file("run"), world.rank());
  std::int64_t across = 0;
  for (auto const& reduction : trace.messages) {
    if (reduction.name != "reduce_scatter gradients") continue;
    for (auto const& [track, spans] : trace.tracks) {
      across += std::ranges::count_if(spans, [&](Trace::Span const& span) {
        return span.name.starts_with("backward ") && reduction.begin < span.begin && span.begin < reduction.end;
      });
    }
  }
  // Of three units the last two begin while the one before is reduced.
  CHECK(across >= 2 * 3);
#if KOZERO_EMULATED
  emulated::set_policy(before);
#endif
}

namespace {

/// So many layers that what has no unit after it to hide behind is little.
ModelConfig deep_model() {
  return gpt2_model({.layers = 8, .heads = 3, .width = 21, .context = 33, .vocabulary = 257});
}

#if KOZERO_EMULATED // a device that runs when it is waited for leaves nothing to hide behind
class AtOnce {
public:
  AtOnce() { emulated::set_policy({.order = emulated::Policy::Order::immediate}); }
  ~AtOnce() { emulated::set_policy(before_); }
  AtOnce(AtOnce const&) = delete;
  AtOnce& operator=(AtOnce const&) = delete;

private:
  emulated::Policy before_ = emulated::policy();
};
#else
struct AtOnce {
  AtOnce() {} // as always
};
#endif

/// Whether it is true on this rank and all others in one of the runs of a minute: other processes may hold up a rank at
/// any time, and for as long as the machine is full.
bool comes_true(Group const& world, std::function<bool(int)> const& in_run) {
  auto const end = std::chrono::steady_clock::now() + std::chrono::minutes(1);
  std::array<std::int64_t, 2> fails_and_goes_on = {1, 1};
  for (int run = 0; fails_and_goes_on[0] > 0 && fails_and_goes_on[1] > 0; ++run) {
    bool const goes_on = world.rank() == 0 && std::chrono::steady_clock::now() < end;
    fails_and_goes_on = {in_run(run) ? 0 : 1, goes_on ? 1 : 0};
    world.ranks.sum(std::span<std::int64_t>(fails_and_goes_on));
    std::this_thread::sleep_for(std::chrono::milliseconds(std::min(run, 20))); // another moment
  }
  return fails_and_goes_on[0] == 0;
}

} // namespace

TEST_CASE_METHOD(RunFixture, "at least half of a gradient has come before anybody waits for it") {
  if (world.size() != 2) return; // that run at the same time, even on a small machine
  AtOnce const at_once;
  config.model = deep_model();
  config.run.updates = 3;
  for (std::int64_t stage = 0; stage <= 3; ++stage) {
    for (auto const type : {GradientType::fp32, GradientType::compute}) {
      CAPTURE(stage, type);
      config.zero.stage = stage;
      config.precision = {.compute = ComputeType::bf16, .gradients = type};
      CHECK(comes_true(world, [&](int run) {
        auto const name = fmt::format("{}-{}-{}", stage, static_cast<int>(type), run);
        return outcome_of(config, folder.file(name), world).early_gradients >= 0.5;
      }));
    }
  }
}

#if KOZERO_EMULATED
TEST_CASE_METHOD(RunFixture, "while the device has work, the host computes tiles of a delayed update") {
  auto const before = emulated::policy();
  emulated::set_policy({.order = emulated::Policy::Order::latest}); // the device has always work
  config.zero.stage = 2;
  config.offload = {.optimizer = OffloadTarget::host, .delayed_update = {1}};
  config.run.updates = 4;
  config.run.profile = true;
  outcome_of(config, folder.file("run"), world);
  emulated::set_policy(before);
  Trace const trace(folder.file("run"), world.rank());
  std::vector<double> tiles, norms;
  for (auto const& [track, spans] : trace.tracks) {
    for (auto const& span : spans) {
      if (span.name == "adamw tile") tiles.push_back(span.end);
      if (span.name == "wait norm") norms.push_back(span.begin);
    }
  }
  std::ranges::sort(norms);
  REQUIRE(norms.size() == 4);
  // The update of batch k is computed during batch k + 1: before the host waits for that one's norm.
  for (std::size_t batch = 1; batch < norms.size(); ++batch) {
    CHECK(std::ranges::any_of(tiles, [&](double end) { return norms[batch - 1] < end && end < norms[batch]; }));
  }
}
#endif
