#include "kernels/column_sum.hpp"
#include "kernels/linear.hpp"
#include "support/catch.hpp"
#include "support/matrices.hpp"

using namespace kozero;
using namespace kozero::test;

namespace {

struct Shape {
  std::int64_t n, out, in;
};

constexpr Shape shapes[] = {{1, 1, 1}, {3, 5, 7}, {7, 33, 21}, {257, 21, 33}, {130, 300, 65}, {0, 5, 7}};

template <class T>
void check_forward(Shape const& s, bool with_bias, WeightOrder order) {
  CAPTURE(s.n, s.out, s.in, with_bias, order);
  bool const out_in = order == WeightOrder::out_in;
  Matrix<T> const x(s.n, s.in, 0, normal_numbers(s.n * s.in, 1));
  Matrix<T> const w(out_in ? s.out : s.in, out_in ? s.in : s.out, 0, normal_numbers(s.out * s.in, 2));
  Vector<T> const bias(normal_numbers(with_bias ? s.out : 0, 3));
  Matrix<T> const y(s.n, s.out);
  Numbers const in_out = out_in ? transpose(w.get(), s.out, s.in) : w.get();
  Numbers want = product(x.get(), in_out, s.n, s.out, s.in);
  Numbers const added = bias.get();
  if (with_bias) {
    for (std::int64_t i = 0; i < s.n * s.out; ++i) want[i] += added[i % s.out];
  }
  linear_forward<T>(Lane(), y, x, w, bias, order);
  REQUIRE(relative_error(y.get(), want) < tolerance<T>);
}

template <class T>
void check_backward(Shape const& s, WeightOrder order) {
  CAPTURE(s.n, s.out, s.in, order);
  bool const out_in = order == WeightOrder::out_in;
  std::int64_t const w_rows = out_in ? s.out : s.in;
  std::int64_t const w_cols = out_in ? s.in : s.out;
  Matrix<T> const x(s.n, s.in, 0, normal_numbers(s.n * s.in, 1));
  Matrix<T> const w(w_rows, w_cols, 0, normal_numbers(s.out * s.in, 2));
  Matrix<T> const dy(s.n, s.out, 0, normal_numbers(s.n * s.out, 4));
  Matrix<T> const dx(s.n, s.in);
  Matrix<float> const dw(w_rows, w_cols, 0, normal_numbers(s.out * s.in, 5));
  Vector<float> const dbias(normal_numbers(s.out, 6));
  Numbers const out_by_in = out_in ? w.get() : transpose(w.get(), s.in, s.out);
  Numbers const want_dx = product(dy.get(), out_by_in, s.n, s.in, s.out);
  Numbers want_dw = product(transpose(dy.get(), s.n, s.out), x.get(), s.out, s.in, s.n);
  if (!out_in) want_dw = transpose(want_dw, s.out, s.in);
  Numbers want_dbias = dbias.get();
  Numbers const old_dw = dw.get();
  for (std::size_t i = 0; i < want_dw.size(); ++i) want_dw[i] += old_dw[i];
  Numbers const gradient = dy.get();
  for (std::int64_t i = 0; i < s.n * s.out; ++i) want_dbias[i % s.out] += gradient[i];

  Vector<float> const scratch(column_sum_scratch(s.n, s.out));
  linear_backward<T>(Lane(), dx, dw, dbias, scratch, dy, x, w, order);
  REQUIRE(relative_error(dx.get(), want_dx) < tolerance<T>);
  REQUIRE(relative_error(dw.get(), want_dw) < tolerance<float>);
  REQUIRE(relative_error(dbias.get(), want_dbias) < tolerance<float>);
}

} // namespace

TEMPLATE_TEST_CASE("a linear layer multiplies by its weight, stored either way, and adds its bias", "", float, bf16,
                   fp16) {
  for (Shape const& s : shapes) {
    for (WeightOrder const order : {WeightOrder::out_in, WeightOrder::in_out}) {
      check_forward<TestType>(s, true, order);
      check_forward<TestType>(s, false, order);
    }
  }
}

TEMPLATE_TEST_CASE("a linear layer's gradients are right; those of parameters are added to what was there", "", float,
                   bf16, fp16) {
  for (Shape const& s : shapes) {
    check_backward<TestType>(s, WeightOrder::out_in);
    check_backward<TestType>(s, WeightOrder::in_out);
  }
}
