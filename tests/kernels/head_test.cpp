#include "kernels/head.hpp"
#include "kernels/shapes.hpp"
#include "support/catch.hpp"
#include "support/matrices.hpp"

#include <algorithm>

using namespace kozero;
using namespace kozero::test;

namespace {

struct Shape {
  std::int64_t n, width, vocabulary;
};

constexpr Shape shapes[] = {{1, 1, 1}, {3, 5, 7}, {21, 33, 257}, {7, 3, 130}, {130, 65, 2500}, {0, 3, 5}};

// Every third target is to be ignored, one is the first id and one the last.
std::vector<std::int32_t> some_targets(std::int64_t n, std::int64_t vocabulary) {
  std::vector<std::int32_t> targets;
  for (std::int64_t i = 0; i < n; ++i) {
    targets.push_back(i % 3 == 1 ? -100 : static_cast<std::int32_t>((i * 7919) % vocabulary));
  }
  if (n > 2) targets[2] = static_cast<std::int32_t>(vocabulary - 1);
  return targets;
}

// The head in doubles: the losses, and the gradients of scale · Σ losses.
struct Truth {
  Numbers losses, dx, dw;
};

Truth truth(Shape const& s, Numbers const& x, Numbers const& w, std::vector<std::int32_t> const& targets,
            double scale) {
  Truth result{Numbers(s.n, 0.0), Numbers(s.n * s.width, 0.0), Numbers(s.vocabulary * s.width, 0.0)};
  Numbers logits(s.vocabulary);
  for (std::int64_t i = 0; i < s.n; ++i) {
    if (targets[i] < 0) continue;
    for (std::int64_t v = 0; v < s.vocabulary; ++v) {
      logits[v] = 0;
      for (std::int64_t c = 0; c < s.width; ++c) logits[v] += x[i * s.width + c] * w[v * s.width + c];
    }
    double const top = *std::max_element(logits.begin(), logits.end());
    double sum = 0;
    for (double const logit : logits) sum += std::exp(logit - top);
    result.losses[i] = std::log(sum) + top - logits[targets[i]];
    for (std::int64_t v = 0; v < s.vocabulary; ++v) {
      double const gradient = scale * (std::exp(logits[v] - top) / sum - (v == targets[i] ? 1.0 : 0.0));
      for (std::int64_t c = 0; c < s.width; ++c) {
        result.dx[i * s.width + c] += gradient * w[v * s.width + c];
        result.dw[v * s.width + c] += gradient * x[i * s.width + c];
      }
    }
  }
  return result;
}

// A head with random input and weights; memory that nothing may be read from holds NaN.
template <class T>
struct Head {
  explicit Head(Shape const& s, double deviation = 1) : Head(s, deviation, head_chunk_rows(s.n, s.vocabulary)) {}
  Head(Shape const& s, double deviation, std::int64_t chunk)
      : shape(s), x(s.n, s.width, 0, normal_numbers(s.n * s.width, 1, deviation)),
        w(s.vocabulary, s.width, 0, normal_numbers(s.vocabulary * s.width, 2)),
        logits(chunk, padded_vocabulary(s.vocabulary)), dlogits(chunk, padded_vocabulary(s.vocabulary)), losses(s.n),
        dx(s.n, s.width), dw(s.vocabulary, s.width, 0, normal_numbers(s.vocabulary * s.width, 3)),
        targets(some_targets(s.n, s.vocabulary)) {}

  HeadScratch<T> scratch() const { return {logits, dlogits}; }
  void run(float scale) const { run(scratch(), scale); }
  void run(HeadScratch<T> const& memory, float scale) const {
    head_loss_and_gradient<T>(Lane(), losses, dx, dw, memory, x, w, DeviceArray(targets), scale);
  }

  Shape shape;
  Matrix<T> x, w;
  Matrix<float> logits;
  Matrix<T> dlogits;
  Vector<float> losses;
  Matrix<T> dx;
  Matrix<float> dw;
  std::vector<std::int32_t> targets;
};

template <class T>
void check(Shape const& s, double deviation = 1, float scale = 0.37f, std::int64_t chunk = 0) {
  CAPTURE(s.n, s.width, s.vocabulary, deviation, scale, chunk);
  Head<T> const head = chunk > 0 ? Head<T>(s, deviation, chunk) : Head<T>(s, deviation);
  Truth want = truth(s, head.x.get(), head.w.get(), head.targets, scale);
  Numbers const old = head.dw.get();
  for (std::size_t i = 0; i < old.size(); ++i) want.dw[i] += old[i];
  head.run(scale);
  REQUIRE(relative_error(head.losses.get(), want.losses) < 1e-6);
  REQUIRE(relative_error(head.dx.get(), want.dx) < tolerance<T>);
  REQUIRE(relative_error(head.dw.get(), want.dw) < tolerance<T>);

  Vector<float> const losses(s.n);
  head_loss<T>(Lane(), losses, head.scratch(), head.x, head.w, DeviceArray(head.targets));
  REQUIRE(losses.get() == head.losses.get());
}

} // namespace

TEST_CASE("the head's losses and gradients are right") {
  for (Shape const& s : shapes) {
    check<float>(s);
    check<bf16>(s);
    check<fp16>(s);
  }
}

TEST_CASE("a large vocabulary in several chunks keeps losses to a millionth") {
  Shape const s{350, 3, 50257};
  check<float>(s, 1, 0.37f, 176);
  check<bf16>(s, 1, 0.37f, 176);
  check<fp16>(s, 1, 0.37f, 176);
}

TEST_CASE("logits of any size neither overflow nor lose the loss") {
  check<float>({9, 5, 33}, 100);
  check<bf16>({9, 5, 33}, 1000);
  check<fp16>({9, 5, 33}, 10000); // logits pass the range of fp16
}

TEST_CASE("gradients in fp16 under a loss scale of 2^16 over the valid targets") {
  check<fp16>({21, 33, 257}, 1, 65536.0f / 14);
}

TEST_CASE("in fp32 the gradient may take the place of the logits") {
  Head<float> const apart({21, 33, 257});
  Head<float> const together({21, 33, 257});
  apart.run(0.5f);
  together.run({together.logits, together.logits}, 0.5f);
  REQUIRE(together.losses.get() == apart.losses.get());
  REQUIRE(together.dx.get() == apart.dx.get());
  REQUIRE(together.dw.get() == apart.dw.get());
}

TEST_CASE("rows without a target have no loss and no gradient, and add nothing to the weight's") {
  Head<float> head({21, 7, 33});
  std::fill(head.targets.begin(), head.targets.end(), -1);
  Numbers const old = head.dw.get();
  head.run(1.0f);
  REQUIRE(head.losses.get() == Numbers(21, 0.0));
  REQUIRE(head.dx.get() == Numbers(21 * 7, 0.0));
  REQUIRE(head.dw.get() == old);
}

TEST_CASE("the gradients are the slopes of the losses that the head itself computes") {
  Shape const s{5, 7, 21};
  Head<float> head(s);
  head.dw.set(Numbers(s.vocabulary * s.width, 0.0));
  float const scale = 0.25f;
  head.run(scale);
  Numbers const dx = head.dx.get();
  Numbers const dw = head.dw.get();

  auto const slopes = [&](Matrix<float>& matrix) {
    Numbers const start = matrix.get();
    Numbers result;
    auto const total = [&](std::size_t i, double change) {
      Numbers moved = start;
      moved[i] += change;
      matrix.set(moved);
      head_loss<float>(Lane(), head.losses, head.scratch(), head.x, head.w, DeviceArray(head.targets));
      double sum = 0;
      for (double const loss : head.losses.get()) sum += loss;
      return scale * sum;
    };
    double const step = 1.0 / 64;
    for (std::size_t i = 0; i < start.size(); ++i) result.push_back((total(i, step) - total(i, -step)) / (2 * step));
    matrix.set(start);
    return result;
  };
  REQUIRE(relative_error(dx, slopes(head.x)) < 2e-3);
  REQUIRE(relative_error(dw, slopes(head.w)) < 2e-3);
}

TEST_CASE("logits are a product, and leave the padding of the vocabulary alone") {
  Head<bf16> const head({7, 33, 257});
  Matrix<float> const logits(7, 257, padded_vocabulary(257) - 257);
  head_logits<bf16>(Lane(), logits, head.x, head.w);
  REQUIRE(relative_error(logits.get(), product(head.x.get(), transpose(head.w.get(), 257, 33), 7, 257, 33)) < 1e-5);
  REQUIRE(logits.padding_is_untouched());
}

TEST_CASE("chunks of the head hold every row, and no more logits than they may") {
  for (HeadChunk const& most : {host_head_chunk, accelerator_head_chunk}) {
    for (std::int64_t const n : {0, 1, 7, 333, 334, 1024, 100000}) {
      for (std::int64_t const vocabulary : {1, 257, 50257, 300000, 20000000}) {
        CAPTURE(most.rows, n, vocabulary);
        std::int64_t const width = padded_vocabulary(vocabulary);
        std::int64_t const chunk = head_chunk_rows(n, vocabulary, most);
        REQUIRE(chunk <= n);
        REQUIRE((chunk > 0 || n == 0));
        REQUIRE(chunk <= std::max(most.logits / width + 16, most.rows));
      }
    }
  }
}

TEST_CASE("an accelerator's chunks are of thousands of rows, at any vocabulary") {
  for (std::int64_t const vocabulary : {50257, 128256, 300000}) {
    for (std::int64_t const n : {4096, 8192, 16384, 100000}) {
      CAPTURE(n, vocabulary);
      REQUIRE(head_chunk_rows(n, vocabulary, accelerator_head_chunk) >= 2048);
    }
  }
  REQUIRE(head_chunk_rows(8192, 50257, accelerator_head_chunk) == 4096);
}
