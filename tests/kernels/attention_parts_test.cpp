#include "support/catch.hpp"

#include "core/error.hpp"
#include "kernels/attention_parts.hpp"
#include "support/messages.hpp"

#include <map>

namespace {

using namespace kozero;
using namespace kozero::test;

constexpr std::int64_t GiB = std::int64_t{1} << 30;

} // namespace

TEST_CASE("The parts of attention cover each head of each window once, within the bound") {
  for (std::int64_t const batch : {1, 2, 5, 8, 31}) {
    for (std::int64_t const heads : {1, 3, 12, 25}) {
      for (std::int64_t const context : {2, 64, 1000, 1024, 4096, 8192}) {
        AttentionShape const shape{batch, context, heads};
        AttentionCut const cut = cut_attention(shape, 64, GiB);
        INFO("B " << batch << " H " << heads << " T " << context << ": " << cut.windows << " windows, " << cut.heads
                  << " heads");
        CHECK((cut.heads == heads || cut.windows == 1));
        std::map<std::int64_t, int> covered;
        for (auto const& part : attention_parts(shape, cut)) {
          CHECK(backward_workspace_bytes(part.size(), context, 64) <= GiB);
          CHECK(part.windows <= cut.windows);
          CHECK(part.heads <= cut.heads);
          for (std::int64_t window = 0; window < part.windows; ++window) {
            for (std::int64_t head = 0; head < part.heads; ++head) {
              ++covered[(part.first_window + window) * heads + part.first_head + head];
            }
          }
        }
        CHECK(std::ssize(covered) == batch * heads);
        for (auto const& [place, times] : covered) CHECK((times == 1 && place < batch * heads));
      }
    }
  }
}

TEST_CASE("The workspace is counted as published for eight windows of sixteen heads over 2048 tokens") {
  std::int64_t const products = std::int64_t{8} * 16 * 2048 * 2048 * 2; // 1.1 GB (NVIDIA/cudnn-frontend)
  std::int64_t const bytes = backward_workspace_bytes({8, 16}, 2048, 64);
  CHECK(bytes > products);
  CHECK(bytes < products + products / 10);
}

TEST_CASE("As few parts as the bound allows, as alike as can be") {
  CHECK(cut_attention({16, 1024, 12}, 64, GiB) == AttentionCut{16, 12});
  CHECK(cut_attention({64, 1024, 12}, 64, GiB) == AttentionCut{32, 12});
  CHECK(cut_attention({33, 1024, 25}, 64, GiB) == AttentionCut{17, 25}); // 18 would do, and leave 15
  CHECK(cut_attention({4, 4096, 32}, 128, GiB) == AttentionCut{1, 16});
  CHECK(cut_attention({2, 16384, 32}, 128, GiB) == AttentionCut{1, 1});
}

TEST_CASE("No windows are no parts") {
  AttentionShape const shape{0, 1024, 12};
  CHECK(attention_parts(shape, cut_attention(shape, 64, GiB)).empty());
}

TEST_CASE("Parts begin where statistics are aligned, whatever the sizes") {
  for (std::int64_t const context : {1021, 1022, 1023}) {
    for (std::int64_t const heads : {5, 6, 25}) {
      AttentionShape const shape{61, context, heads};
      for (auto const& part : attention_parts(shape, cut_attention(shape, 8, GiB / 4))) {
        CHECK(offsets_of(part, shape, 8).stats % 4 == 0);
      }
    }
  }
}

TEST_CASE("A head that is above the bound by itself is refused with what to do, and so are odd windows in parts") {
  CHECK_NOTHROW(cut_attention({1, 22784, 1}, 64, GiB));
  CHECK_THROWS_AS(cut_attention({1, 32768, 1}, 64, GiB), InputError);
  CHECK(says(message_of([] { cut_attention({1, 32768, 1}, 64, GiB); }), "make the context shorter"));
  CHECK_THROWS_AS(cut_attention({1, 16383, 2}, 64, GiB), InputError);
  CHECK(says(message_of([] { cut_attention({1, 16383, 2}, 64, GiB); }), "a multiple of 4"));
}

TEST_CASE("The start of a part is where its first head is in the packed arrays") {
  AttentionShape const shape{3, 10, 4}; // T 10, H 4, D 8: C = 32
  PartOffsets const at = offsets_of({.first_window = 2, .windows = 1, .first_head = 3, .heads = 1}, shape, 8);
  CHECK(at.qkv == 2 * 10 * 96 + 24);
  CHECK(at.out == 2 * 10 * 32 + 24);
  CHECK(at.stats == 2 * 40 + 30);
}
