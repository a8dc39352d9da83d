#include "support/catch.hpp"

#include "kernels/elementwise.hpp"
#include "support/matrices.hpp"

#include <algorithm>

namespace {

using namespace kozero;
using namespace kozero::test;

constexpr std::int64_t lengths[] = {0, 1, 3, 257, 4095, 4096, 4097, 3 * 4096, 50001};

template <class T>
void check_add(std::int64_t n) {
  Vector<T> const a(normal_numbers(n, 1)), b(normal_numbers(n, 2)), y(n);
  Numbers expected = a.get();
  Numbers const other = b.get();
  for (std::size_t i = 0; i < expected.size(); ++i) {
    expected[i] = static_cast<double>(static_cast<float>(static_cast<T>(static_cast<float>(expected[i] + other[i]))));
  }
  add<T>(Lane(), y, a, b);
  CHECK(y.get() == expected);
  add<T>(Lane(), a, a, b);
  CHECK(a.get() == expected);
}

} // namespace

TEST_CASE("Addition rounds once, also in place") {
  for (std::int64_t n : lengths) {
    check_add<float>(n);
    check_add<bf16>(n);
  }
}
