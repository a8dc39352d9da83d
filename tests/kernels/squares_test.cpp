#include "kernels/squares.hpp"

#include "kernels/aligned_tree.hpp"
#include "support/catch.hpp"
#include "support/host_targets.hpp"
#include "support/matrices.hpp"
#include "support/neighbour_tree.hpp"

#include <algorithm>

using namespace kozero;
using namespace kozero::test;

namespace {

// Around a row, the sixteen rows of a group, and the nodes that a thread takes.
constexpr std::int64_t lengths[] = {0, 1, 7, 8, 9, 127, 128, 129, 1003, 16383, 16384, 16385, 40000, 5 * 16384 + 13};

template <class T>
T* data(Vector<T> const& x) {
  return Vec<T>(x).data();
}

/// Pieces of a block that are cut at `cuts`, ascending; every second one is the host's.
template <class T>
double squares_of_pieces(Vector<T> const& x, std::int64_t n, std::vector<std::int64_t> cuts) {
  SquareSum sum = square_sum(n);
  cuts.push_back(n);
  std::int64_t begin = 0;
  for (std::size_t c = 0; c < cuts.size(); ++c) {
    std::int64_t const end = cuts[c];
    if (c % 2 == 0 || !host_reaches_device) {
      add_squares<DeviceExec, T>(Lane(), data(x) + begin, begin, end - begin, sum);
    } else {
      add_squares<HostExec, T>(HostLane(), data(x) + begin, begin, end - begin, sum);
    }
    begin = end;
  }
  return sum_of_columns(sum.total());
}

template <class T>
double squares(Vector<T> const& x, std::int64_t n) {
  return squares_of_pieces(x, n, {});
}

} // namespace

TEMPLATE_TEST_CASE("squares of a block are the tree over its rows of eight, to the bit", "", float, bf16, fp16) {
  for (std::int64_t const n : lengths) {
    Vector<TestType> const x(normal_numbers(n, 1));
    INFO(n << " elements");
    for (HostTarget const target : host_targets()) {
      AsHostTarget const as(target);
      CHECK(squares(x, n) == sum_of_squares(x.get()));
    }
  }
}

TEST_CASE("squares in double agree with extended precision") {
  for (std::int64_t const n : lengths) {
    Vector<float> const x(normal_numbers(n, 2));
    long double exact = 0;
    for (double const value : x.get()) exact += static_cast<long double>(value) * value;
    INFO(n << " elements");
    CHECK(std::fabs(squares(x, n) - static_cast<double>(exact)) <= 1e-15 * static_cast<double>(exact));
  }
  Vector<float> const largest(Numbers(10, 3e38));
  double const each = static_cast<double>(3e38f);
  CHECK(squares(largest, 10) == 10 * (each * each));
  Vector<float> const bad({1, std::numeric_limits<double>::infinity(), 1});
  CHECK_FALSE(std::isfinite(squares(bad, 3)));
}

TEST_CASE("a block cut anywhere at a row has the bits of the whole") {
  struct Case {
    std::int64_t n, step;
  };
  for (auto const [n, step] : {Case{1003, 8}, Case{2 * 16384 + 77, 3000}}) {
    Vector<float> const x(normal_numbers(n, 3));
    double const whole = squares(x, n);
    for (std::int64_t first = 0; first <= n; first += step) {
      std::int64_t const second = first + (n - first) / 16 * 8;
      CAPTURE(n, first, second);
      REQUIRE(squares_of_pieces(x, n, {first, second}) == whole);
    }
  }
  std::int64_t const n = 500;
  Vector<float> const x(normal_numbers(n, 3));
  std::vector<std::int64_t> rows;
  for (std::int64_t at = 8; at < n; at += 8) rows.push_back(at);
  CHECK(squares_of_pieces(x, n, rows) == squares(x, n));
}

TEST_CASE("elements that are no whole rows are refused") {
  Vector<float> const x(normal_numbers(40, 4));
  SquareSum sum = square_sum(40);
  CHECK_THROWS_AS((add_squares<DeviceExec, float>(Lane(), data(x), 4, 8, sum)), Error);
  CHECK_THROWS_AS((add_squares<DeviceExec, float>(Lane(), data(x), 0, 12, sum)), Error);
}

TEST_CASE("an interval is cut into the nodes that the tree has for it") {
  for (int const top : {0, 2, 4}) {
    for (std::int64_t begin = 0; begin <= 70; ++begin) {
      for (std::int64_t end = begin; end <= 70; ++end) {
        detail::AlignedCut const cut(begin, end, top);
        AlignedSum<1> expected(70), got(70);
        for (std::int64_t i = begin; i < end; ++i) expected.add({0, i}, {1});
        std::int64_t at = begin;
        bool legal = true;
        for (std::int64_t k = 0; k < cut.count(); ++k) {
          AlignedNode const node = cut.node(k);
          legal = legal && node.begin() == at && node.level <= top && node.end() <= end;
          got.add(node, {static_cast<double>(node.end() - node.begin())});
          at = node.end();
        }
        CAPTURE(top, begin, end);
        REQUIRE(legal);
        REQUIRE(at == end);
        REQUIRE(got.nodes().size() == expected.nodes().size()); // so none could have been larger, below the top
        if (top == 4 && end - begin < 16) REQUIRE(static_cast<std::size_t>(cut.count()) == expected.nodes().size());
      }
    }
  }
}
