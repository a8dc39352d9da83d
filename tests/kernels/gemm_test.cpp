#include "kernels/gemm.hpp"
#include "support/catch.hpp"
#include "support/matrices.hpp"

using namespace kozero;
using namespace kozero::test;

namespace {

struct Case {
  std::int64_t m, n, k;
  bool turned_a = false, turned_b = false, with_bias = false;
  Into into = Into::overwrite;
};

template <class T>
Operand<T> operand(Matrix<T> const& matrix, bool turned) {
  return turned ? transposed<T>(matrix) : plain<T>(matrix);
}

// The product of random operands in padded rows, against doubles.
template <class T, class R>
void check(Case const& c, double allowed = tolerance<R>) {
  CAPTURE(c.m, c.n, c.k, c.turned_a, c.turned_b, c.with_bias, c.into == Into::accumulate);
  Matrix<T> const a(c.turned_a ? c.k : c.m, c.turned_a ? c.m : c.k, 3, normal_numbers(c.m * c.k, 1));
  Matrix<T> const b(c.turned_b ? c.n : c.k, c.turned_b ? c.k : c.n, 5, normal_numbers(c.k * c.n, 2));
  Vector<T> const bias(normal_numbers(c.n, 3));
  Matrix<R> result(c.m, c.n, 7); // NaN, which overwriting must not read
  if (c.into == Into::accumulate) result.set(normal_numbers(c.m * c.n, 4));

  Numbers want = product(c.turned_a ? transpose(a.get(), c.k, c.m) : a.get(),
                         c.turned_b ? transpose(b.get(), c.n, c.k) : b.get(), c.m, c.n, c.k);
  Numbers const old = result.get();
  Numbers const added = bias.get();
  for (std::int64_t i = 0; i < c.m * c.n; ++i) {
    if (c.into == Into::accumulate) want[i] += old[i];
    if (c.with_bias) want[i] += added[i % c.n];
  }

  gemm<T, R>(Lane(), c.m, c.n, c.k, result.view().data(), c.n + 7, operand(a, c.turned_a), operand(b, c.turned_b),
             c.with_bias ? bias.view().data() : nullptr, c.into);
  REQUIRE(relative_error(result.get(), want) < allowed);
  REQUIRE(result.padding_is_untouched());
}

template <class T, class R>
void check_all_ways(std::int64_t m, std::int64_t n, std::int64_t k) {
  for (int way = 0; way < 16; ++way) {
    check<T, R>(
        {m, n, k, (way & 1) != 0, (way & 2) != 0, (way & 4) != 0, (way & 8) != 0 ? Into::accumulate : Into::overwrite});
  }
}

// Each way of reading, with each way of starting once.
template <class T, class R>
void check_some_ways(std::int64_t m, std::int64_t n, std::int64_t k) {
  check<T, R>({m, n, k, false, true, true, Into::overwrite});
  check<T, R>({m, n, k, false, false, false, Into::overwrite});
  check<T, R>({m, n, k, true, false, false, Into::accumulate});
  check<T, R>({m, n, k, true, true, true, Into::accumulate});
}

template <class T, class R>
void check_small_shapes() {
  for (std::int64_t const m : {0, 1, 33}) {
    for (std::int64_t const n : {0, 1, 21, 130}) {
      for (std::int64_t const k : {0, 1, 7, 257}) check_all_ways<T, R>(m, n, k);
    }
  }
}

} // namespace

TEST_CASE("a product of any size, read either way, with and without bias and old content, is right") {
  INFO(gemm_backend());
  SECTION("fp32") { check_small_shapes<float, float>(); }
  SECTION("bf16 into fp32") { check_small_shapes<bf16, float>(); }
  SECTION("bf16") { check_small_shapes<bf16, bf16>(); }
  SECTION("fp16 into fp32") { check_small_shapes<fp16, float>(); }
  SECTION("fp16") { check_small_shapes<fp16, fp16>(); }
}

TEST_CASE("a product of several tiles and slices is right") {
  SECTION("fp32") { check_some_ways<float, float>(300, 521, 800); }
  SECTION("bf16 into fp32") { check_some_ways<bf16, float>(300, 521, 800); }
  SECTION("bf16") { check_some_ways<bf16, bf16>(300, 521, 800); }
  SECTION("fp16 into fp32") { check_some_ways<fp16, float>(300, 521, 800); }
  SECTION("fp16") { check_some_ways<fp16, fp16>(300, 521, 800); }
  SECTION("wider than the widened pieces of Kokkos Kernels") {
    check<bf16, float>({2, 2100, 4, false, true});
    check<bf16, float>({2100, 2, 4, true, false, true, Into::accumulate});
    check<bf16, bf16>({2, 3, 5000, false, true, true});
    check<fp16, fp16>({2, 3, 5000, false, true, true});
  }
}

TEST_CASE("a long product keeps its accuracy") {
  check<float, float>({5, 7, 50257});
  // Tensor cores cut off what their sums have no digits for, instead of rounding it (Fasi et al., 2021).
  double const allowed = KOZERO_HAS_ACCELERATOR ? 3e-4 : tolerance<float>;
  check<bf16, float>({5, 7, 50257, true, true}, allowed);
  check<fp16, float>({5, 7, 50257, true, true}, allowed);
}

TEST_CASE("sums of fp16 pass its range on the way; only a result beyond it is infinite") {
  // Products of 90000 that cancel, nearly or not.
  Matrix<fp16> const left(2, 4, 0, {300, 300, -300, -299, 300, 300, 0, 0});
  Matrix<fp16> const right(4, 1, 0, Numbers(4, 300.0));
  Matrix<float> const wide(2, 1);
  Matrix<fp16> const narrow(2, 1);
  gemm<fp16, float>(Lane(), 2, 1, 4, wide.view().data(), 1, plain<fp16>(left), plain<fp16>(right), nullptr,
                    Into::overwrite);
  gemm<fp16, fp16>(Lane(), 2, 1, 4, narrow.view().data(), 1, plain<fp16>(left), plain<fp16>(right), nullptr,
                   Into::overwrite);
  REQUIRE(wide.get() == Numbers{300, 180000});
  REQUIRE(narrow.get() == Numbers{300, std::numeric_limits<double>::infinity()});
}

TEMPLATE_TEST_CASE("an infinity in an operand reaches the row and column that it belongs to, and no other", "", bf16,
                   fp16) {
  Numbers a(33 * 40, 1.0);
  a[3 * 40 + 5] = std::numeric_limits<double>::infinity();
  Matrix<TestType> const left(33, 40, 0, a);
  Matrix<TestType> const right(40, 21, 0, Numbers(40 * 21, 1.0));
  Matrix<float> const result(33, 21);
  gemm<TestType, float>(Lane(), 33, 21, 40, result.view().data(), 21, plain<TestType>(left), plain<TestType>(right),
                        nullptr, Into::overwrite);
  Numbers const got = result.get();
  for (std::int64_t i = 0; i < 33 * 21; ++i) {
    if (i / 21 == 3) {
      REQUIRE(std::isinf(got[i]));
    } else {
      REQUIRE(got[i] == 40.0);
    }
  }
}

TEST_CASE("the backend tells its name and version") {
  std::string const text = gemm_backend();
  CAPTURE(text);
  REQUIRE(text.find_first_of("0123456789") != std::string::npos);
  REQUIRE((text.find("oneDNN ") == 0 || text.find("Kokkos Kernels ") == 0 || text.find("cuBLASLt ") == 0));
}
