#include "support/catch.hpp"

#include "kernels/layernorm.hpp"
#include "support/matrices.hpp"

namespace {

using namespace kozero;
using namespace kozero::test;

struct Normed {
  double mean = 0;
  double rstd = 0;
  Numbers y;
};

Normed norm(double const* x, Numbers const& weight, Numbers const& bias) {
  std::size_t const width = weight.size();
  Normed row;
  for (std::size_t c = 0; c < width; ++c) row.mean += x[c] / static_cast<double>(width);
  double variance = 0;
  for (std::size_t c = 0; c < width; ++c)
    variance += (x[c] - row.mean) * (x[c] - row.mean) / static_cast<double>(width);
  row.rstd = 1.0 / std::sqrt(variance + 1e-5);
  for (std::size_t c = 0; c < width; ++c) row.y.push_back((x[c] - row.mean) * row.rstd * weight[c] + bias[c]);
  return row;
}

// Σ dy · norm(x): the function whose gradients the backward pass gives.
double objective(Numbers const& x, Numbers const& dy, Numbers const& weight, Numbers const& bias) {
  double total = 0;
  for (std::size_t row = 0; row < x.size() / weight.size(); ++row) {
    Normed const normed = norm(&x[row * weight.size()], weight, bias);
    for (std::size_t c = 0; c < weight.size(); ++c) total += dy[row * weight.size() + c] * normed.y[c];
  }
  return total;
}

// Central differences of `function` in each element of `at`.
template <class Function>
Numbers differences(Numbers at, Function const& function) {
  double const h = 1e-5;
  Numbers result;
  for (double& value : at) {
    double const before = value;
    value = before + h;
    double const above = function(at);
    value = before - h;
    double const below = function(at);
    value = before;
    result.push_back((above - below) / (2 * h));
  }
  return result;
}

constexpr std::int64_t widths[] = {1, 3, 21, 64, 257};

template <class T>
struct Input {
  std::int64_t n, width;
  Matrix<T> x, y;
  Vector<T> weight, bias;
  Vector<float> mean, rstd;

  Input(std::int64_t n_rows, std::int64_t columns)
      : n(n_rows), width(columns), x(n, width, 3, normal_numbers(n * width, 1)), y(n, width, 5),
        weight(normal_numbers(width, 2)), bias(normal_numbers(width, 3)), mean(n), rstd(n) {
    layernorm_forward<T>(Lane(), y, mean, rstd, x, weight, bias);
  }
};

template <class T>
void check_forward(std::int64_t n, std::int64_t width) {
  Input<T> const in(n, width);
  Numbers y, mean, rstd;
  Numbers const x = in.x.get();
  for (std::int64_t row = 0; row < n; ++row) {
    Normed const normed = norm(&x[row * width], in.weight.get(), in.bias.get());
    y.insert(y.end(), normed.y.begin(), normed.y.end());
    mean.push_back(normed.mean);
    rstd.push_back(normed.rstd);
  }
  INFO(n << " rows of " << width);
  CHECK(in.y.padding_is_untouched());
  CHECK(relative_error(in.y.get(), y) < tolerance<T>);
  CHECK(relative_error(in.mean.get(), mean) < tolerance<float>);
  CHECK(relative_error(in.rstd.get(), rstd) < tolerance<float>);
}

template <class T>
void check_backward(std::int64_t n, std::int64_t width) {
  Input<T> const in(n, width);
  Matrix<T> const dy(n, width, 2, normal_numbers(n * width, 4));
  Matrix<T> const dx(n, width, 1, normal_numbers(n * width, 5));
  Vector<float> const dweight(normal_numbers(width, 6));
  Vector<float> const dbias(normal_numbers(width, 7));
  Numbers const x = in.x.get(), weight = in.weight.get(), bias = in.bias.get(), d = dy.get();
  auto const expected = [](Numbers const& before, Numbers const& gradient) {
    Numbers sum = before;
    for (std::size_t i = 0; i < sum.size(); ++i) sum[i] += gradient[i];
    return sum;
  };
  Numbers const dx_expected =
      expected(dx.get(), differences(x, [&](Numbers const& at) { return objective(at, d, weight, bias); }));
  Numbers const dweight_expected =
      expected(dweight.get(), differences(weight, [&](Numbers const& at) { return objective(x, d, at, bias); }));
  Numbers const dbias_expected =
      expected(dbias.get(), differences(bias, [&](Numbers const& at) { return objective(x, d, weight, at); }));
  layernorm_backward<T>(Lane(), dx, dweight, dbias, dy, in.x, in.mean, in.rstd, in.weight);
  INFO(n << " rows of " << width);
  CHECK(dx.padding_is_untouched());
  CHECK(relative_error(dx.get(), dx_expected) < tolerance<T>);
  CHECK(relative_error(dweight.get(), dweight_expected) < tolerance<float>);
  CHECK(relative_error(dbias.get(), dbias_expected) < tolerance<float>);
}

} // namespace

TEST_CASE("Layer norm agrees with double precision") {
  for (std::int64_t width : widths) {
    check_forward<float>(7, width);
    check_forward<bf16>(7, width);
    check_forward<fp16>(7, width);
  }
  check_forward<float>(0, 21);
}

TEST_CASE("Layer norm of a row far from zero keeps its variance") {
  Numbers numbers;
  for (int c = 0; c < 64; ++c) numbers.push_back(1000.0 + 0.25 * (c % 4));
  Numbers const one(64, 1.0), zero(64, 0.0);
  Matrix<float> const x(1, 64, 0, numbers), y(1, 64);
  Vector<float> const mean(1), rstd(1);
  layernorm_forward<float>(Lane(), y, mean, rstd, x, Vector<float>(one), Vector<float>(zero));
  CHECK(relative_error(rstd.get(), {norm(numbers.data(), one, zero).rstd}) < 1e-6);
}

TEST_CASE("The gradients of layer norm are its finite differences, added to what is there") {
  for (std::int64_t width : widths) {
    check_backward<float>(3, width);
    check_backward<bf16>(3, width);
    check_backward<fp16>(3, width);
  }
  check_backward<float>(130, 3); // more rows than are summed at once
}
