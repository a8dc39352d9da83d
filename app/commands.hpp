#pragma once
#include "core/runtime.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace kozero {

/// Going on from a checkpoint that was trained on data that is not there any more.
enum class OtherData { refused, allowed };

struct TrainArguments {
  std::string deck;
  std::vector<std::string> overrides;
  bool dry_run = false;
  bool overwrite = false;
  std::string resume;      // from the newest checkpoint of the run folder: empty: no, "auto": where there is one
  std::string resume_from; // or from this one
  OtherData other_data = OtherData::refused;
};

struct CheckArguments {
  std::string deck;
  std::vector<std::string> overrides;
  bool reference = false;
};

struct BenchArguments {
  std::string deck; // empty: a published size
  std::vector<std::string> overrides;
  bool quick = false;
  bool json = false;
  std::string params = "200M"; // of adam: with k, M, G as in a deck
  bool cold = false;           // of adam: rows without a gradient too
  std::int64_t updates = 3;    // of step: a round
};

struct PlanArguments {
  std::string deck;
  std::vector<std::string> overrides;
  std::int64_t ranks = 1;
  std::optional<std::int64_t> ranks_per_host;
  std::optional<std::string> rates;
  bool json = false;
};

struct GenerateArguments {
  std::string checkpoint;
  std::string prompt;
  std::vector<std::int32_t> prompt_tokens;
  std::int64_t tokens = 256;
  double temperature = 1.0;
  std::int64_t top_k = 0;
  std::int64_t seed = 1;
};

struct CheckpointArguments {
  std::string path;  // a checkpoint or a run folder
  std::string other; // of diff
  std::int64_t keep = 1;
  std::int64_t keep_best = 0;
  bool dry_run = false;
  bool no_run_is_on = false; // where nothing can be locked
};

struct SelftestArguments {
  std::string deck;
  std::vector<std::string> overrides;
  std::int64_t updates = 4;
};

/// Each runs one subcommand and returns the exit status.
int run_train(TrainArguments const& arguments);
int run_check(CheckArguments const& arguments);
int run_bench_gemm(BenchArguments const& arguments);
int run_bench_attention(BenchArguments const& arguments);
int run_bench_link(BenchArguments const& arguments);
int run_bench_exchange(BenchArguments const& arguments);
int run_bench_adam(BenchArguments const& arguments);
int run_bench_step(BenchArguments const& arguments);
int run_plan(PlanArguments const& arguments);
int run_generate(GenerateArguments const& arguments);
int run_checkpoint_ls(CheckpointArguments const& arguments);
int run_checkpoint_verify(CheckpointArguments const& arguments);
int run_checkpoint_diff(CheckpointArguments const& arguments);
int run_checkpoint_prune(CheckpointArguments const& arguments);
int run_selftest(SelftestArguments const& arguments);

} // namespace kozero
