#include "comm/rank_values.hpp"
#include "comm/tree_sum.hpp"

#include "support/host_targets.hpp"

using namespace kozero;
using namespace kozero::test;

namespace {

// The trees for 1 to 8 ranks, as formulas.
float tree_by_hand(std::vector<float> const& p) {
  switch (p.size()) {
  case 1: return p[0];
  case 2: return p[0] + p[1];
  case 3: return (p[0] + p[1]) + p[2];
  case 4: return (p[0] + p[1]) + (p[2] + p[3]);
  case 5: return ((p[0] + p[1]) + (p[2] + p[3])) + p[4];
  case 6: return ((p[0] + p[1]) + (p[2] + p[3])) + (p[4] + p[5]);
  case 7: return ((p[0] + p[1]) + (p[2] + p[3])) + ((p[4] + p[5]) + p[6]);
  default: return ((p[0] + p[1]) + (p[2] + p[3])) + ((p[4] + p[5]) + (p[6] + p[7]));
  }
}

template <class T>
std::vector<std::vector<T>> make_pieces(int ranks, std::int64_t count) {
  std::vector<std::vector<T>> pieces(static_cast<std::size_t>(ranks));
  for (int r = 0; r < ranks; ++r) {
    for (std::int64_t i = 0; i < count; ++i) pieces[static_cast<std::size_t>(r)].push_back(addend<T>(9, r, i));
  }
  return pieces;
}

template <class T>
std::vector<void const*> addresses(std::vector<std::vector<T>> const& pieces) {
  std::vector<void const*> result;
  for (auto const& piece : pieces) result.push_back(piece.data());
  return result;
}

} // namespace

TEST_CASE("the tree adds neighbours in pairs, then pairs of pairs") {
  std::int64_t const count = 1300; // two tiles and a bit
  std::int64_t differs_from_left_to_right = 0;
  for (int ranks = 1; ranks <= 8; ++ranks) {
    auto const pieces = make_pieces<float>(ranks, count);
    std::vector<float> out(static_cast<std::size_t>(count));
    tree_sum(DType::f32, addresses(pieces), count, out.data());
    for (std::size_t i = 0; i < out.size(); ++i) {
      std::vector<float> values;
      float left_to_right = 0;
      for (auto const& piece : pieces) {
        values.push_back(piece[i]);
        left_to_right += piece[i];
      }
      REQUIRE(same_bits(out[i], tree_by_hand(values)));
      differs_from_left_to_right += out[i] != left_to_right;
    }
  }
  CHECK(differs_from_left_to_right > 100); // or the numbers could not tell one order from another
}

TEMPLATE_TEST_CASE("any number of ranks and elements, into one of the pieces", "", float, bf16, fp16, double,
                   std::int64_t, std::int32_t) {
  for (int const ranks : {1, 2, 3, 7, 11, 16, 33}) {
    for (std::int64_t const count : {0, 1, 511, 512, 513, 3001}) {
      INFO("ranks " << ranks << ", count " << count);
      auto pieces = make_pieces<TestType>(ranks, count);
      auto& out = pieces[static_cast<std::size_t>(ranks / 2)];
      tree_sum(dtype_of<TestType>, addresses(pieces), count, out.data());
      std::int64_t wrong = 0;
      for (std::int64_t i = 0; i < count; ++i) {
        wrong += !same_bits(out[static_cast<std::size_t>(i)], sum_over_ranks<TestType>(9, ranks, i));
      }
      REQUIRE(wrong == 0);
    }
  }
}

TEMPLATE_TEST_CASE("16-bit types are rounded once, not at every addition", "", bf16, fp16) {
  // even + 1 is a tie and would round back to even, twice.
  float const even = std::is_same_v<TestType, bf16> ? 256.0f : 2048.0f;
  std::vector<std::vector<TestType>> const pieces = {{even}, {1.0f}, {0.5f}, {0.5f}};
  TestType out(0.0f);
  tree_sum(dtype_of<TestType>, addresses(pieces), 1, &out);
  CHECK(static_cast<float>(out) == even + 2);
}

TEST_CASE("sums of fp16 pass its range on the way, and become infinite where they end beyond it") {
  std::vector<std::vector<fp16>> const pieces = {{65504.0f, 65504.0f}, {65504.0f, 65504.0f}, {-65504.0f, 0.0f}};
  std::vector<fp16> out(2);
  tree_sum(DType::f16, addresses(pieces), 2, out.data());
  CHECK(static_cast<float>(out[0]) == 65504.0f);
  CHECK(std::isinf(static_cast<float>(out[1])));
}

TEST_CASE("arrays of bytes have no sum") {
  unsigned char byte = 1;
  CHECK_THROWS_AS(tree_sum(DType::u8, std::array<void const*, 1>{&byte}, 1, &byte), Error);
}

TEST_CASE("sums have the same bits for every instruction set of the host's loops") {
  std::int64_t const count = 1301;
  auto const pieces = make_pieces<bf16>(5, count);
  std::vector<bf16> widest(count);
  tree_sum(DType::bf16, addresses(pieces), count, widest.data());
  for (HostTarget const target : host_targets()) {
    CAPTURE(name_of(target));
    AsHostTarget const as(target);
    std::vector<bf16> out(count);
    tree_sum(DType::bf16, addresses(pieces), count, out.data());
    REQUIRE(std::memcmp(out.data(), widest.data(), sizeof(bf16) * count) == 0);
  }
}
