// What a step must not do, as an accelerator would stop for it: take memory, copy from pageable memory, or make the
// host wait more often than doc/architecture.md says.
#include "core/activity.hpp"
#include "support/catch.hpp"
#include "support/heap_watch.hpp"
#include "support/training.hpp"

#include <Kokkos_Core.hpp>

#include <bit>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <regex>
#include <set>
#include <sstream>

using namespace kozero;
using namespace kozero::test;

namespace {

// --- the page

struct Wait {
  std::string name, times, where;
};

std::string read_file(std::filesystem::path const& path) {
  std::ifstream file(path);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

/// The part of the page between two headings of its level.
std::string section(std::string const& heading) {
  std::string const page = read_file(KOZERO_SOURCE_DIR "/doc/architecture.md");
  std::size_t const begin = page.find("\n## " + heading + "\n");
  REQUIRE(begin != std::string::npos);
  return page.substr(begin, page.find("\n## ", begin + 1) - begin);
}

/// The rows of its tables that begin with a name in `quotes`.
std::vector<std::vector<std::string>> rows_of(std::string const& text) {
  std::vector<std::vector<std::string>> rows;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    if (!line.starts_with("| `")) continue;
    auto& cells = rows.emplace_back();
    std::istringstream parts(line.substr(1));
    for (std::string cell; std::getline(parts, cell, '|');) {
      cells.push_back(cell.substr(1, cell.find_last_not_of(' ')));
    }
    cells[0] = cells[0].substr(1, cells[0].size() - 2);
  }
  return rows;
}

std::vector<Wait> waits_of_an_update() {
  std::vector<Wait> waits;
  for (auto const& cells : rows_of(section("Waits of the host"))) {
    if (cells.size() == 5) waits.push_back({cells[0], cells[1], cells[2]});
  }
  return waits;
}

// --- what the page's words mean for a case

struct Case {
  ComputeType compute = ComputeType::fp32;
  GradientType gradients = GradientType::fp32;
  std::int64_t stage = 0;
  std::int64_t accumulate = 1;
  OffloadConfig offload;
  Reproducibility reproducibility = Reproducibility::rerun;
};

std::string describe(Case const& of) {
  return fmt::format("compute {} gradients {} stage {} accumulate {} offload {} ratio {} delays {} topology {}",
                     static_cast<int>(of.compute), static_cast<int>(of.gradients), of.stage, of.accumulate,
                     static_cast<int>(of.offload.optimizer), of.offload.ratio, of.offload.delays(),
                     static_cast<int>(of.reproducibility));
}

class Meaning {
public:
  Meaning(Config const& config, Case const& of, Training const& training, Group const& group)
      : plan_(sharding_of(config), group.rank(), group.size(), of.accumulate) {
    for (auto const& piece : plan_.pieces(architecture_of(config.model)->layout())) {
      if (piece.space != Space::host || piece.interval.empty()) continue;
      host_ = true;
      parts_ += (piece.interval.size() + (1 << 19) - 1) >> 19;
      tiles_ += (piece.interval.size() + (1 << 20) - 1) >> 20;
    }
    bool const delays = of.offload.delays();
    bool const topology = of.reproducibility == Reproducibility::topology;
    std::int64_t const reductions = plan_.reductions();
    times_ = {{"1", 1},
              {"A", of.accumulate},
              {"T", tiles_},
              {"(R - 1) C", (reductions - 1) * parts_},
              {"⌈R/2⌉ C", (reductions + 1) / 2 * parts_},
              {"G", group.size() > 1 ? training.planned_traffic().parameters.calls : 0}};
    holds_ = {{"always", true},
              {"state on the host", host_},
              {"state on the host, `topology`, R > 1", host_ && topology && reductions > 1},
              {"state on the host, no `topology`", host_ && !topology},
              {"state on the host, no delay", host_ && !delays},
              {"delayed updates", delays},
              {"MPI reaches device memory", host_reaches_device}};
  }
  /// Of each name how often an update.
  std::map<std::string, std::int64_t> counts(std::vector<Wait> const& waits) const {
    std::map<std::string, std::int64_t> all;
    for (auto const& wait : waits) {
      INFO(wait.name << ": " << wait.times << " | " << wait.where);
      REQUIRE(times_.contains(wait.times));
      REQUIRE(holds_.contains(wait.where));
      if (holds_.at(wait.where) && times_.at(wait.times) > 0) all[wait.name] += times_.at(wait.times);
    }
    return all;
  }

private:
  Plan plan_;
  bool host_ = false;
  std::int64_t parts_ = 0, tiles_ = 0;
  std::map<std::string, std::int64_t> times_;
  std::map<std::string, bool> holds_;
};

// --- what a step does

std::map<std::string, std::int64_t> fences() {
  std::map<std::string, std::int64_t> counts;
  for (auto const& [name, count] : activity().fences()) counts[name] = count;
  return counts;
}

std::int64_t kokkos_allocations = 0;

/// Counts Kokkos' own allocations while it lives. On CUDA a team that needs no slow scratch memory allocates
/// 0 bytes at each launch.
class KokkosWatch {
public:
  KokkosWatch() {
    kokkos_allocations = 0;
    Kokkos::Tools::Experimental::set_allocate_data_callback(
        [](auto, char const*, void const*, std::uint64_t bytes) { kokkos_allocations += bytes > 0 ? 1 : 0; });
  }
  ~KokkosWatch() { Kokkos::Tools::Experimental::set_allocate_data_callback(nullptr); }
  KokkosWatch(KokkosWatch const&) = delete;
  KokkosWatch& operator=(KokkosWatch const&) = delete;
};

std::vector<Case> cases() {
  std::vector<OffloadConfig> offloads(4);
  for (std::size_t i = 1; i < offloads.size(); ++i) offloads[i].optimizer = OffloadTarget::host;
  offloads[2].ratio = 0.6;
  offloads[3].delayed_update.start = 1;
  std::vector<Case> all;
  for (auto const compute : {ComputeType::fp32, ComputeType::bf16, ComputeType::fp16}) {
    for (auto const gradients : {GradientType::fp32, GradientType::compute}) {
      if (compute == ComputeType::fp32 && gradients == GradientType::compute) continue;
      for (std::int64_t stage = 0; stage <= 3; ++stage) {
        for (auto const& offload : offloads) {
          if (stage == 0 && offload.optimizer == OffloadTarget::host) continue;
          for (std::int64_t const accumulate : {1, 3}) all.push_back({compute, gradients, stage, accumulate, offload});
          if (compute != ComputeType::fp32) continue;
          for (std::int64_t const accumulate : {3, 4, 6}) {
            all.push_back({compute, gradients, stage, accumulate, offload, Reproducibility::topology});
          }
        }
      }
    }
  }
  return all;
}

/// A training that has done two updates: all that is made when it is first wanted is there.
class Warm {
public:
  Warm(Case const& of, std::string const& text_file, Group const& group) {
    SmallRunOptions options{.stage = of.stage, .offload = of.offload, .gradients = of.gradients, .micro = 2};
    options.reproducibility = of.reproducibility;
    gpt2_of(options.model).layers = 2;
    options.accumulate = of.accumulate;
    setup_ = setup_of<float>(options, group.size());
    setup_.config.precision.compute = of.compute;
    setup_.config.data = {.train = text_file, .validation = "0", .format = DataFormat::text};
    Corpus const corpus = open_corpus(setup_.config.data, setup_.config.model.vocabulary, setup_.config.model.context);
    setup_.tokens = std::make_shared<CorpusTokens>(corpus, setup_.config.run.seed);
    training_ = make_training(setup_, group, ledger_);
    training_->initialise();
    for (int i = 0; i < 2; ++i) training_->step();
  }
  Training& operator*() { return *training_; }
  Config const& config() const { return setup_.config; }

private:
  Ledger ledger_;
  TrainingSetup setup_;
  std::unique_ptr<Training> training_;
};

constexpr int steps = 3;

} // namespace

TEST_CASE("every wait of the host has a name in the page") {
  std::set<std::string> named;
  for (auto const& cells : rows_of(section("Waits of the host"))) named.insert(cells[0]);
  std::set<std::string> used;
  std::regex const call(R"re((fence|wait)\("([^"]+)"\))re");
  for (char const* const folder : {"src", "kernels", "io", "app"}) {
    for (auto const& entry :
         std::filesystem::recursive_directory_iterator(std::filesystem::path(KOZERO_SOURCE_DIR) / folder)) {
      if (entry.path().extension() != ".cpp" && entry.path().extension() != ".hpp") continue;
      std::istringstream lines(read_file(entry.path()));
      for (std::string line; std::getline(lines, line);) {
        if (line.find_first_not_of(' ') == line.find("//")) continue;
        for (std::sregex_iterator at(line.begin(), line.end(), call), end; at != end; ++at) used.insert((*at)[2]);
      }
    }
  }
  CHECK(used == named);
}

TEST_CASE_METHOD(World, "a step takes no memory, copies nothing pageable, and waits as often as the page says") {
  setenv("KOZERO_BF16_GEMM", "fp32", 1); // oneDNN's own way makes objects at each call
  SharedFolder const folder(world.ranks);
  std::string const text = folder.write("text", text_of(20000));
  std::vector<Wait> const waits = waits_of_an_update();
  REQUIRE(!waits.empty());
  for (Case const& of : cases()) {
    INFO(describe(of));
    bool const cuts_no_tree = !std::has_single_bit(static_cast<unsigned>(world.size()));
    if (of.reproducibility == Reproducibility::topology && cuts_no_tree) continue; // is refused
    Warm training(of, text, world);
    Meaning const meaning(training.config(), of, *training, world);
    Activity const before = activity();
    auto const waited_before = fences();
    std::int64_t from_heap = 0;
    std::string stacks;
    for (int i = 0; i < steps; ++i) {
      HeapWatch const heap;
      auto const report = (*training).step();
      from_heap += heap.calls();
      stacks += heap.stacks();
      REQUIRE((report && !report->update.skipped));
    }
    INFO(stacks);
    CHECK(from_heap == 0);
    CHECK(activity().allocations == before.allocations);
    CHECK(activity().pageable_copies == before.pageable_copies);
    std::map<std::string, std::int64_t> waited;
    for (auto const& [name, count] : fences()) {
      auto const place = waited_before.find(name);
      std::int64_t const more = count - (place == waited_before.end() ? 0 : place->second);
      if (more > 0) waited[name] = more;
    }
    auto expected = meaning.counts(waits);
    for (auto& [name, count] : expected) count *= steps;
    CHECK(waited == expected);
    KokkosWatch const kokkos;
    (*training).step();
    CHECK(kokkos_allocations == 0);
  }
}

TEST_CASE("the watch of the heap sees what the program takes, and nothing where it does not look") {
  if (!HeapWatch::works()) return;
  HeapWatch const watch;
  CHECK(watch.calls() == 0);
  std::vector<int> const taken(100);
  std::int64_t const calls = watch.calls();
  CHECK(calls == 1);
  CHECK(taken.back() == 0);
}
