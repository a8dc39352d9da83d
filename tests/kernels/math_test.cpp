#include "support/catch.hpp"

#include "kernels/math.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

namespace {

using namespace kozero;
constexpr float inf = std::numeric_limits<float>::infinity();

// |result - exact| in units of the last place of the float nearest to `exact`.
double ulps(float result, double exact) {
  float const nearest = static_cast<float>(exact);
  float const step =
      std::max(std::nextafterf(std::fabs(nearest), inf) - std::fabs(nearest), std::numeric_limits<float>::denorm_min());
  return std::fabs(static_cast<double>(result) - exact) / static_cast<double>(step);
}

// Every 997th float from `from` to `to`, and its negative.
template <class Check>
void sweep(float from, float to, Check const& check) {
  for (std::uint32_t bits = detail::bits_of_float(from); bits <= detail::bits_of_float(to); bits += 997) {
    check(detail::float_of_bits(bits));
    check(-detail::float_of_bits(bits));
  }
}

} // namespace

TEST_CASE("fast_exp is within 2 ulp wherever e^x is a normal float") {
  double worst = 0;
  sweep(1e-30f, 88.7f, [&](float x) {
    double const exact = std::exp(static_cast<double>(x));
    if (exact >= 1.1754944e-38) worst = std::max(worst, ulps(fast_exp(x), exact));
  });
  CHECK(worst < 2.0);
  CHECK(worst > 0.5); // the sweep has seen something
}

TEST_CASE("fast_exp is right to one step where e^x is subnormal") {
  for (float x = -87.3f; x > -104.5f; x -= 0.01f) CHECK(ulps(fast_exp(x), std::exp(static_cast<double>(x))) <= 1.01);
}

TEST_CASE("fast_exp at the ends of its range") {
  CHECK(fast_exp(0.0f) == 1.0f);
  CHECK(fast_exp(-0.0f) == 1.0f);
  CHECK(fast_exp(-inf) == 0.0f);
  CHECK(fast_exp(-1e30f) == 0.0f);
  CHECK(fast_exp(inf) == inf);
  CHECK(fast_exp(1e30f) == inf);
  CHECK(fast_exp(88.72284f) == inf); // ln of the first power that is no float
  CHECK(std::isfinite(fast_exp(88.7228f)));
  CHECK(std::isnan(fast_exp(std::numeric_limits<float>::quiet_NaN())));
}
