// That messages by NCCL go beside the passes of a run, as run.profile shows it.
#include "support/catch.hpp"
#include "support/training.hpp"

#if KOZERO_EMULATED
#include "core/emulated/policy.hpp"
#endif

#include <algorithm>
#include <fstream>
#include <vector>

using namespace kozero;
using namespace kozero::test;

namespace {

struct Span {
  std::string track;
  std::string name;
  double begin = 0; // microseconds
  double end = 0;
  bool is_message() const { return track == "device: messages"; }
  bool is_pass() const { return name.starts_with("forward ") || name.starts_with("backward "); }
};

/// Of this rank, in the order in which lanes were given them.
std::vector<Span> spans_of(std::string const& folder, int rank) {
  std::ifstream file(folder + fmt::format("/profile/rank-{:03}.json", rank));
  Json const json = Json::parse(file);
  std::map<int, std::string> tracks;
  std::vector<Span> spans;
  for (auto const& event : json.at("traceEvents")) {
    if (event.at("ph") == "M" && event.at("name") == "thread_name") {
      tracks[event.at("tid")] = event.at("args").at("name");
    }
  }
  for (auto const& event : json.at("traceEvents")) {
    if (event.at("ph") != "X") continue;
    double const begin = event.at("ts");
    spans.push_back({tracks.at(event.at("tid")), event.at("name"), begin, begin + event.at("dur").get<double>()});
  }
  return spans;
}

std::vector<Span> profiled(Config const& config, std::string const& folder, Group const& world) {
  Ledger ledger;
  std::filesystem::create_directories(folder);
  train({.config = config,
         .resolved_deck = "",
         .corpus = open_corpus(config.data, config.model.vocabulary, config.model.context),
         .batch = batch_shape(config.batch, world.size()),
         .folder = folder},
        world, ledger);
  world.ranks.barrier();
  return spans_of(folder, world.rank());
}

std::int64_t count(std::vector<Span> const& spans, std::string const& name) {
  return std::ranges::count_if(spans, [&](Span const& span) { return span.is_message() && span.name == name; });
}

#if KOZERO_EMULATED
/// Messages that had not begun when a pass was done that the device was given after them: on a device that does nothing
/// before it must, that pass waited for none of them.
std::int64_t passed_by(std::vector<Span> const& spans, std::string const& name) {
  std::int64_t found = 0;
  for (std::size_t i = 0; i < spans.size(); ++i) {
    if (!spans[i].is_message() || spans[i].name != name) continue;
    found += std::any_of(spans.begin() + static_cast<std::ptrdiff_t>(i), spans.end(),
                         [&](Span const& later) { return later.is_pass() && later.end <= spans[i].begin; });
  }
  return found;
}
#endif

constexpr std::int64_t layers = 6;
constexpr std::int64_t updates = 3;

} // namespace

TEST_CASE_METHOD(RunFixture, "messages by NCCL are spans of a lane of their own, one a collective, beside the passes") {
  config.model = gpt2_model({.layers = layers, .heads = 3, .width = 21, .context = 33, .vocabulary = 257});
  config.run.updates = updates;
  config.run.profile = true;
#if KOZERO_EMULATED
  emulated::Policy const before = emulated::policy();
  emulated::set_policy({.order = emulated::Policy::Order::latest});
#endif
  for (bool const offload : {false, true}) {
    for (std::int64_t const stage : {1, 2, 3}) {
      CAPTURE(stage, offload);
      config.zero.stage = stage;
      config.offload = {};
      if (offload) config.offload.optimizer = OffloadTarget::host;
      auto const spans = profiled(config, folder.file(fmt::format("{}{}", stage, offload)), world);
      std::int64_t const units = layers + 2;
      CHECK(count(spans, "reduce_scatter gradients") == updates * units);
      std::int64_t const gathers = count(spans, "all_gather parameters");
      CHECK((stage == 3 ? gathers > updates * units : gathers == (updates + 1) * units)); // the first parameters too
#if KOZERO_EMULATED
      // The last unit's gradients have no pass to go beside; with the state on the host the one before has none either,
      // since its copy down is waited for with it.
      CHECK(passed_by(spans, "reduce_scatter gradients") >= updates * (units - 2));
      // At stages 1 and 2 the first blocks are wanted at once, at 3 those that begin a pass.
      CHECK(passed_by(spans, "all_gather parameters") >= updates * (units - 3));
#endif
    }
  }
#if KOZERO_EMULATED
  emulated::set_policy(before);
#endif
}
