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

/// Elements begin … end-1 of a block.
struct Part {
  std::int64_t begin, end;
  std::int64_t size() const { return end - begin; }
};

/// Adds the squares of a part of x, which has n elements, by the device.
template <class T>
void add_on_device(SquareSum& sum, Vector<T> const& x, std::int64_t n, Part part) {
  SquareNodes<Lane> const nodes(part.begin, part.size(), n);
  DeviceArray<double> const sums(nodes.size());
  nodes.compute(Lane(), sums.data(), x.data() + part.begin);
  nodes.add_to(sum, sums.get().data());
}

/// The same, by the host.
template <class T>
void add_on_host(SquareSum& sum, Vector<T> const& x, std::int64_t n, Part part) {
  SquareNodes<HostLane> const nodes(part.begin, part.size(), n);
  std::vector<T> const values = to_host(x.data() + part.begin, part.size());
  std::vector<double> sums(static_cast<std::size_t>(nodes.size()));
  nodes.compute(HostLane(), sums.data(), values.data());
  nodes.add_to(sum, sums.data());
}

enum class By { device, host };

/// Pieces of a block that are cut at `cuts`, ascending; every second one is the other's.
template <class T>
double squares_of_pieces(Vector<T> const& x, std::int64_t n, std::vector<std::int64_t> cuts, By first = By::device) {
  SquareSum sum = square_sum(n);
  cuts.push_back(n);
  std::int64_t begin = 0;
  for (std::size_t c = 0; c < cuts.size(); ++c) {
    Part const part{begin, cuts[c]};
    if ((c % 2 == 0) == (first == By::device)) {
      add_on_device(sum, x, n, part);
    } else {
      add_on_host(sum, x, n, part);
    }
    begin = part.end;
  }
  return sum_of_columns(sum.total());
}

template <class T>
double squares(Vector<T> const& x, std::int64_t n, By by = By::device) {
  return squares_of_pieces(x, n, {}, by);
}

} // namespace

TEMPLATE_TEST_CASE("squares of a block are the tree over its rows of eight, to the bit", "", float, bf16, fp16) {
  for (std::int64_t const n : lengths) {
    Vector<TestType> const x(normal_numbers(n, 1));
    INFO(n << " elements");
    for (HostTarget const target : host_targets()) {
      AsHostTarget const as(target);
      CHECK(squares(x, n) == sum_of_squares(x.get()));
      CHECK(squares(x, n, By::host) == sum_of_squares(x.get()));
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

TEMPLATE_TEST_CASE("elements that are no whole rows are refused", "", Lane, HostLane) {
  CHECK_THROWS_AS((SquareNodes<TestType>(4, 8, 40)), Error);
  CHECK_THROWS_AS((SquareNodes<TestType>(0, 12, 40)), Error);
}

TEST_CASE("sums take eight doubles for each node that a thread makes") {
  std::int64_t const on_device = runs_on_host<Lane> ? 16384 : 2048;
  for (std::int64_t const nodes : {0, 1, 5}) {
    CHECK(SquareNodes<HostLane>(0, nodes * 16384, nodes * 16384).size() == 8 * nodes);
    CHECK(SquareNodes<Lane>(0, nodes * on_device, nodes * on_device).size() == 8 * nodes);
  }
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
