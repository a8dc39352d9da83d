// The norm depends on the gradient alone: not on the ranks that share it, the stage, or where its pieces lie.
#include "support/catch.hpp"
#include "support/small_run.hpp"
#include "support/world.hpp"

#include <algorithm>

using namespace kozero;
using namespace kozero::test;

namespace {

/// Blocks of several tiles, so that a ratio cuts their shards.
ModelConfig wide_model() { return gpt2_model({.layers = 2, .heads = 2, .width = 64, .context = 8, .vocabulary = 301}); }

/// Targets in the first row of a batch alone. All other gradients are zero, so any number of ranks has the same sum.
RowMaker first_row(std::int64_t vocabulary) {
  return [make = random_rows(vocabulary)](std::int64_t batch, std::int64_t row, std::span<std::int32_t> in,
                                          std::span<std::int32_t> out) {
    make(batch, row, in, out);
    if (row > 0) std::fill(out.begin(), out.end(), -1);
  };
}

std::vector<OffloadConfig> offloads(std::int64_t stage) {
  std::vector<OffloadConfig> all = {{}};
  if (stage == 0) return all;
  for (double const ratio : {0.3, 0.5, 1.0}) all.push_back({.optimizer = OffloadTarget::host, .ratio = ratio});
  return all;
}

template <class T>
void compare_with_one_rank(SmallRunOptions options, Group const& group) {
  options.rows = first_row(options.model.vocabulary);
  Alone self;
  auto const one = small_run<T>(options, self);
  for (options.stage = 0; options.stage <= 3; ++options.stage) {
    for (OffloadConfig const& offload : offloads(options.stage)) {
      options.offload = offload;
      auto const ranks = small_run<T>(options, group);
      INFO("width " << gpt2_of(options.model).width << ", tied " << gpt2_of(options.model).tied << ", stage "
                    << options.stage << ", ratio " << offload.ratio);
      CHECK(ranks.norms == one.norms);
      CHECK(ranks.hash == one.hash);
    }
  }
}

} // namespace

TEST_CASE_METHOD(World,
                 "the same gradient has the same norm, to the bit, on any number of ranks, at any stage and offload") {
  for (auto model : {odd_model(), tiny_model(), wide_model()}) {
    for (bool const tied : {true, false}) {
      gpt2_of(model).tied = tied;
      compare_with_one_rank<float>({.model = model}, world);
    }
  }
  compare_with_one_rank<bf16>({.model = wide_model()}, world);
  compare_with_one_rank<bf16>({.model = wide_model(), .gradients = GradientType::compute}, world);
}
