#include "kernels/window_sums.hpp"

#include "core/error.hpp"

#include "support/catch.hpp"
#include "support/matrices.hpp"
#include "support/neighbour_tree.hpp"

using namespace kozero;
using namespace kozero::test;

namespace {

Numbers sums_of(Numbers const& losses, std::int64_t windows) {
  Vector<float> const x(losses);
  DeviceArray<double> const sums(windows);
  window_sums(Lane(), sums, x);
  return sums.get();
}

} // namespace

TEST_CASE("the losses of each window are added by the tree over its rows") {
  for (std::int64_t const rows : {0, 1, 2, 3, 33, 127, 128, 129, 257, 1000, 1024, 5001}) {
    for (std::int64_t const windows : {0, 1, 3, 8}) {
      Vector<float> const x(normal_numbers(rows * windows, 1, 4));
      Numbers const losses = x.get();
      Numbers const sums = sums_of(losses, windows);
      for (std::int64_t b = 0; b < windows; ++b) {
        Numbers const window(losses.begin() + b * rows, losses.begin() + (b + 1) * rows);
        CAPTURE(rows, windows, b);
        CHECK(sums[b] == sum_of_neighbours(window));
        long double exact = 0;
        long double size = 0;
        for (double const loss : window) {
          exact += loss;
          size += std::fabs(loss);
        }
        CHECK(std::fabs(sums[b] - static_cast<double>(exact)) <= 1e-15 * static_cast<double>(size));
      }
    }
  }
}

TEST_CASE("losses that are no whole windows are refused") { CHECK_THROWS_AS(sums_of(normal_numbers(10, 1), 3), Error); }
