// What gemm asks of cuBLASLt, beside right numbers: once for each product, in a workspace of the lane's own that the
// ledger has, with TF32 where that is asked for alone. Errors say the product in words.
#include "kernels/cublaslt.hpp"
#include "kernels/cublaslt/stand_in.hpp"
#include "kernels/gemm.hpp"
#include "kernels/gemm_workspace.hpp"
#include "support/catch.hpp"
#include "support/matrices.hpp"

using namespace kozero;
using namespace kozero::test;
namespace stand_in = kozero::test::cublaslt_stand_in;

namespace {

template <class T, class R>
Numbers multiplied(Lane const& lane, std::int64_t m, std::int64_t n, std::int64_t k, double scale = 1) {
  Matrix<T> const a(m, k, 0, normal_numbers(m * k, 1, scale));
  Matrix<T> const b(k, n, 0, normal_numbers(k * n, 2, scale));
  Matrix<R> const c(m, n);
  gemm<T, R>(lane, m, n, k, c.view().data(), n, plain<T>(a), plain<T>(b), nullptr, Into::overwrite);
  lane.fence("test");
  return c.get();
}

std::int64_t of_workspace(Ledger const& ledger) { return ledger.bytes(Space::device, Category::workspace); }

} // namespace

TEST_CASE("the workspace of a lane is 32 MiB and its alignment, in the ledger, and the same in one that counts") {
  std::int64_t const bytes = (std::int64_t{32} << 20) + 256;
  {
    Ledger ledger;
    GemmWorkspace const workspace(LazyLane(), Fp32Products::exact, ledger);
    CHECK(of_workspace(ledger) == bytes);
    CHECK(workspace.bytes() == std::int64_t{32} << 20);
    CHECK(reinterpret_cast<std::uintptr_t>(workspace.data()) % 256 == 0);
  }
  Ledger counting(Ledger::Buffers::counted);
  GemmWorkspace const planned(LazyLane("never made"), Fp32Products::tf32, counting);
  CHECK(of_workspace(counting) == bytes);

  Ledger small;
  small.set_limit(Space::device, 1 << 20);
  CHECK_THROWS_AS(GemmWorkspace(LazyLane(), Fp32Products::exact, small), LimitError);
}

TEST_CASE("a product takes the newest workspace of its lane") {
  Ledger ledger;
  GemmWorkspace const& before = GemmWorkspace::of(Lane());
  {
    GemmWorkspace const newer(LazyLane(), Fp32Products::exact, ledger);
    GemmWorkspace const newest(LazyLane(), Fp32Products::tf32, ledger);
    CHECK(&GemmWorkspace::of(Lane()) == &newest);
  }
  CHECK(&GemmWorkspace::of(Lane()) == &before);
}

#if KOZERO_EMULATED
TEST_CASE("a lane without a workspace of its own gets no product") {
  Lane const other = separate_lane("another");
  CHECK_THROWS_WITH((multiplied<float, float>(other, 2, 3, 4)), Catch::Matchers::Contains("'another'"));
  Ledger ledger;
  GemmWorkspace const workspace(LazyLane("a third"), Fp32Products::exact, ledger);
  CHECK_THROWS_AS((multiplied<float, float>(other, 2, 3, 4)), Error);
}
#endif

TEST_CASE("the heuristic is asked once for products that are alike, and again where anything differs") {
  multiplied<bf16, float>(Lane(), 8, 16, 24);
  std::int64_t const first = stand_in::questions();
  multiplied<bf16, float>(Lane(), 8, 16, 24);
  CHECK(stand_in::questions() == first);
  multiplied<bf16, bf16>(Lane(), 8, 16, 24);
  CHECK(stand_in::questions() == first + 1);
  multiplied<bf16, bf16>(Lane(), 8, 16, 32);
  CHECK(stand_in::questions() == first + 2);

  Matrix<bf16> const a(8, 32, 0, normal_numbers(8 * 32, 1));
  Matrix<bf16> const c(8, 33);
  auto const multiply = [&](std::int64_t first_column) {
    gemm<bf16, bf16>(Lane(), 8, 8, 32, c.view().data() + first_column, 33, plain<bf16>(a), transposed<bf16>(a), nullptr,
                     Into::overwrite);
    Lane().fence("test");
  };
  multiply(0);
  CHECK(stand_in::questions() == first + 3);
  multiply(1); // two bytes on
  CHECK(stand_in::questions() == first + 4);
  multiply(8); // 16 bytes on are as good as none
  CHECK(stand_in::questions() == first + 4);
}

TEST_CASE("many shapes keep no more descriptors than the cache holds") {
  std::int64_t most = 0;
  for (std::int64_t k = 1; k < 1200; ++k) {
    multiplied<float, float>(Lane(), 1, 1, k);
    most = std::max(most, stand_in::descriptors());
  }
  CHECK(most <= 4 * 513);
}

TEST_CASE("fp32 operands are rounded to TF32 where the lane's workspace says so, 16-bit operands never") {
  Numbers const exact = multiplied<float, float>(Lane(), 21, 33, 65);
  Numbers const half = multiplied<bf16, float>(Lane(), 21, 33, 65);
  Ledger ledger;
  GemmWorkspace const workspace(LazyLane(), Fp32Products::tf32, ledger);
  Numbers const rounded = multiplied<float, float>(Lane(), 21, 33, 65);
  CHECK(rounded != exact);
  double const error = relative_error(rounded, exact);
  CHECK(error > 1e-5);
  CHECK(error < 1e-3);
  CHECK(multiplied<bf16, float>(Lane(), 21, 33, 65) == half);
}

TEST_CASE("what the library refuses is an error that says the product in words") {
  cublaslt::Key const key{.m = 3,
                          .n = 5,
                          .k = 7,
                          .a_stride = 7,
                          .b_stride = 4,
                          .c_stride = 5,
                          .a_transposed = false,
                          .b_transposed = false,
                          .operands = cublaslt::Type::bf16,
                          .result = cublaslt::Type::fp32,
                          .a_alignment = 16,
                          .b_alignment = 2,
                          .c_alignment = 8};
  CHECK_THROWS_WITH(cublaslt::Matmul(key),
                    Catch::Matchers::StartsWith(
                        "cublasLtMatmulAlgoGetHeuristic refuses c [3,5] in fp32 = a [3,7] · b [7,5], operands in bf16, "
                        "rows 5, 7 and 4 elements apart, addresses multiples of 8, 16 and 2 bytes "
                        "(CUBLAS_STATUS_INVALID_VALUE: the leading dimension is not below the rows); "));
}

TEST_CASE("an address's alignment counts up to 16 bytes") {
  auto const at = [](std::uintptr_t address) { return cublaslt::alignment_of(reinterpret_cast<void const*>(address)); };
  CHECK(at(256) == 16);
  CHECK(at(16) == 16);
  CHECK(at(24) == 8);
  CHECK(at(6) == 2);
  CHECK(at(7) == 1);
}
