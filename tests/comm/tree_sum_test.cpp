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

TEMPLATE_TEST_CASE("any number of ranks and elements, into one of the pieces", "", float, bf16, double, std::int64_t,
                   std::int32_t) {
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

TEST_CASE("bf16 is rounded once, not at every addition") {
  // 256 + 1 is a tie in bf16 and would round back to 256, twice.
  std::vector<std::vector<bf16>> const pieces = {{bf16(256.0f)}, {bf16(1.0f)}, {bf16(0.5f)}, {bf16(0.5f)}};
  bf16 out(0.0f);
  tree_sum(DType::bf16, addresses(pieces), 1, &out);
  CHECK(static_cast<float>(out) == 258.0f);
}

TEST_CASE("arrays of bytes have no sum") {
  unsigned char byte = 1;
  CHECK_THROWS_AS(tree_sum(DType::u8, {&byte}, 1, &byte), Error);
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
