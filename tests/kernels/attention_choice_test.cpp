#include "support/catch.hpp"

#include "core/error.hpp"
#include "kernels/attention.hpp"
#include "kernels/attention_graph.hpp"
#include "support/messages.hpp"

namespace {

using namespace kozero;
using namespace kozero::test;

AttentionChoice choose(std::int64_t context, std::int64_t head_width, DType type = DType::bf16,
                       AttentionWays ways = AttentionWays::all) {
  AttentionLibraryLimits const hopper{"cuDNN", 256};
  return choose_attention({8, context, 12}, head_width, type, ways, &hopper);
}

} // namespace

TEST_CASE("Attention takes the library where that takes the shape, and says how") {
  for (DType const type : {DType::bf16, DType::f16}) {
    AttentionChoice const choice = choose(1024, 64, type);
    CHECK(choice.way == AttentionWay::graphs);
    CHECK(says(choice.text, "cuDNN"));
    CHECK(says(choice.text, "at once"));
    CHECK(says(choice.text, "MiB"));
  }
  CHECK(says(choose(4096, 128).text, "in 4 parts of up to 2 windows"));
  CHECK(says(choose(8192, 128).text, "in 16 parts of up to 6 heads"));
  CHECK(choose(1024, 8).way == AttentionWay::graphs);
  CHECK(choose(1024, 256).way == AttentionWay::graphs);
}

TEST_CASE("Attention takes the tile kernel elsewhere, and says why") {
  auto const refused = [](AttentionChoice const& choice, char const* why) {
    CHECK(choice.way == AttentionWay::tiles);
    INFO(choice.text);
    CHECK(choice.text.starts_with("tile kernel ("));
    CHECK(says(choice.text, why));
  };
  refused(choose(1024, 64, DType::f32), "not fp32");
  refused(choose(1024, 20), "no multiple of 8");
  refused(choose(1024, 264), "wider than the 256");
  refused(choose(1, 64), "one token");
  refused(choose(1024, 64, DType::bf16, AttentionWays::tiles), "model.attention is tiles");
  AttentionLibraryLimits const ampere{"cuDNN", 128};
  refused(choose_attention({1, 64, 1}, 136, DType::bf16, AttentionWays::all, &ampere), "wider than the 128");
  refused(choose_attention({1, 64, 1}, 64, DType::bf16, AttentionWays::all, nullptr),
          runs_on_host<Lane> ? "the host's" : "without");
}

TEST_CASE("A context that the library has no room for is refused, not handed to the slower kernel") {
  CHECK_THROWS_AS(choose(32768, 64), InputError);
  CHECK(choose(32768, 64, DType::f32).way == AttentionWay::tiles);
  CHECK(choose(32768, 64, DType::bf16, AttentionWays::tiles).way == AttentionWay::tiles);
}
