#include "support/catch.hpp"

#include "kernels/column_sum.hpp"
#include "kernels/elementwise.hpp"
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

  /// `padding`: what rows are longer than wide; 8 leaves whole packs where the width has them.
  Input(std::int64_t n_rows, std::int64_t columns, std::int64_t padding)
      : n(n_rows), width(columns), x(n, width, padding, normal_numbers(n * width, 1)), y(n, width, padding),
        weight(normal_numbers(width, 2)), bias(normal_numbers(width, 3)), mean(n), rstd(n) {
    layernorm_forward<T>(Lane(), y, mean, rstd, x, weight, bias);
  }
};

template <class T>
void check_forward(std::int64_t n, std::int64_t width, std::int64_t padding) {
  Input<T> const in(n, width, padding);
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
void check_backward(std::int64_t n, std::int64_t width, std::int64_t padding) {
  Input<T> const in(n, width, padding);
  Matrix<T> const dy(n, width, padding, normal_numbers(n * width, 4));
  Matrix<T> const dx(n, width, padding, normal_numbers(n * width, 5));
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
  Vector<float> const scratch(column_sum_scratch(n, width));
  layernorm_backward<T>(Lane(), dx, dweight, dbias, scratch, dy, in.x, in.mean, in.rstd, in.weight);
  INFO(n << " rows of " << width);
  CHECK(dx.padding_is_untouched());
  CHECK(relative_error(dx.get(), dx_expected) < tolerance<T>);
  CHECK(relative_error(dweight.get(), dweight_expected) < tolerance<float>);
  CHECK(relative_error(dbias.get(), dbias_expected) < tolerance<float>);
}

// All that a norm's kernels make, of rows with some padding.
template <class T>
std::vector<Numbers> results(std::int64_t n, std::int64_t width, std::int64_t padding) {
  Input<T> const in(n, width, padding);
  Matrix<T> const dx(n, width, padding, normal_numbers(n * width, 5));
  Vector<float> const dweight(normal_numbers(width, 6));
  Vector<float> const dbias(normal_numbers(width, 7));
  Vector<float> const scratch(column_sum_scratch(n, width));
  layernorm_backward<T>(Lane(), dx, dweight, dbias, scratch, in.y, in.x, in.mean, in.rstd, in.weight);
  return {in.y.get(), in.mean.get(), in.rstd.get(), dx.get(), dweight.get(), dbias.get()};
}

template <class T>
void check_residual(std::int64_t n, std::int64_t width, std::int64_t padding) {
  Input<T> const in(n, width, padding);
  Matrix<T> const residual(n, width, 0, normal_numbers(n * width, 8));
  Matrix<T> const x(n, width, 0, normal_numbers(n * width, 9)), sum(n, width, padding, x.get());
  Matrix<T> const y(n, width, padding);
  Vector<float> const mean(n), rstd(n);
  residual_layernorm_forward<T>(Lane(), y, mean, rstd, sum, residual, in.weight, in.bias);

  add<T>(Lane(), x.view().flat(), x.view().flat(), residual.view().flat());
  layernorm_forward<T>(Lane(), in.y, in.mean, in.rstd, x, in.weight, in.bias);
  INFO(n << " rows of " << width << ", padding " << padding);
  CHECK(sum.get() == x.get());
  CHECK(y.get() == in.y.get());
  CHECK(mean.get() == in.mean.get());
  CHECK(rstd.get() == in.rstd.get());
  CHECK((sum.padding_is_untouched() && y.padding_is_untouched()));
}

} // namespace

TEMPLATE_TEST_CASE("Layer norm agrees with double precision", "", float, bf16, fp16) {
  for (std::int64_t width : widths) {
    check_forward<TestType>(7, width, 3);
    check_forward<TestType>(7, width, 8);
  }
  check_forward<TestType>(0, 21, 0);
}

TEMPLATE_TEST_CASE("Layer norm has the same bits where rows hold whole packs and where they do not", "", float, bf16,
                   fp16) {
  for (std::int64_t width : widths) {
    INFO("width " << width);
    CHECK(results<TestType>(130, width, 0) == results<TestType>(130, width, 3));
  }
}

TEMPLATE_TEST_CASE("Addition and layer norm at once have the bits of one after the other", "", float, bf16, fp16) {
  for (std::int64_t width : widths) {
    check_residual<TestType>(7, width, 0);
    check_residual<TestType>(7, width, 3);
  }
  check_residual<TestType>(0, 21, 0);
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

TEMPLATE_TEST_CASE("The gradients of layer norm are its finite differences, added to what is there", "", float, bf16,
                   fp16) {
  for (std::int64_t width : widths) {
    check_backward<TestType>(3, width, 3);
    check_backward<TestType>(3, width, 8);
  }
  check_backward<TestType>(130, 3, 0); // more rows than are summed at once
}
