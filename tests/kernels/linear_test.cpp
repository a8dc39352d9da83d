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
void check_forward(Shape const& s, bool with_bias) {
  CAPTURE(s.n, s.out, s.in, with_bias);
  Matrix<T> const x(s.n, s.in, 0, normal_numbers(s.n * s.in, 1));
  Matrix<T> const w(s.out, s.in, 0, normal_numbers(s.out * s.in, 2));
  Vector<T> const bias(normal_numbers(with_bias ? s.out : 0, 3));
  Matrix<T> const y(s.n, s.out);
  Numbers want = product(x.get(), transpose(w.get(), s.out, s.in), s.n, s.out, s.in);
  Numbers const added = bias.get();
  if (with_bias) {
    for (std::int64_t i = 0; i < s.n * s.out; ++i) want[i] += added[i % s.out];
  }
  linear_forward<T>(Lane(), y, x, w, bias);
  REQUIRE(relative_error(y.get(), want) < tolerance<T>);
}

template <class T>
void check_backward(Shape const& s) {
  CAPTURE(s.n, s.out, s.in);
  Matrix<T> const x(s.n, s.in, 0, normal_numbers(s.n * s.in, 1));
  Matrix<T> const w(s.out, s.in, 0, normal_numbers(s.out * s.in, 2));
  Matrix<T> const dy(s.n, s.out, 0, normal_numbers(s.n * s.out, 4));
  Matrix<T> const dx(s.n, s.in);
  Matrix<float> const dw(s.out, s.in, 0, normal_numbers(s.out * s.in, 5));
  Vector<float> const dbias(normal_numbers(s.out, 6));
  Numbers const want_dx = product(dy.get(), w.get(), s.n, s.in, s.out);
  Numbers want_dw = product(transpose(dy.get(), s.n, s.out), x.get(), s.out, s.in, s.n);
  Numbers want_dbias = dbias.get();
  Numbers const old_dw = dw.get();
  for (std::size_t i = 0; i < want_dw.size(); ++i) want_dw[i] += old_dw[i];
  Numbers const gradient = dy.get();
  for (std::int64_t i = 0; i < s.n * s.out; ++i) want_dbias[i % s.out] += gradient[i];

  linear_backward<T>(Lane(), dx, dw, dbias, dy, x, w);
  REQUIRE(relative_error(dx.get(), want_dx) < tolerance<T>);
  REQUIRE(relative_error(dw.get(), want_dw) < tolerance<float>);
  REQUIRE(relative_error(dbias.get(), want_dbias) < tolerance<float>);
}

} // namespace

TEST_CASE("a linear layer multiplies by the transposed weight and adds its bias") {
  for (Shape const& s : shapes) {
    check_forward<float>(s, true);
    check_forward<float>(s, false);
    check_forward<bf16>(s, true);
    check_forward<bf16>(s, false);
    check_forward<fp16>(s, true);
    check_forward<fp16>(s, false);
  }
}

TEST_CASE("a linear layer's gradients are right; those of parameters are added to what was there") {
  for (Shape const& s : shapes) {
    check_backward<float>(s);
    check_backward<bf16>(s);
    check_backward<fp16>(s);
  }
}
