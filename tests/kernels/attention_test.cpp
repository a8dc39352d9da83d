#include "support/catch.hpp"

#include "kernels/attention.hpp"
#include "kernels/attention_tile.hpp"
#include "support/matrices.hpp"

#include <algorithm>

namespace {

using namespace kozero;
using namespace kozero::test;

// Attention by its definition, in double, one head at a time.
struct Oracle {
  AttentionShape shape;
  std::int64_t d;
  Numbers qkv;
  Numbers out, logsumexp, probability; // [N,C], [B·H·T], [B·H·T·T]

  Oracle(AttentionShape const& s, std::int64_t head_width, Numbers values)
      : shape(s), d(head_width), qkv(std::move(values)), out(s.batch * s.context * width()),
        logsumexp(s.batch * s.heads * s.context), probability(logsumexp.size() * s.context) {
    for (std::int64_t b = 0; b < s.batch; ++b) {
      for (std::int64_t h = 0; h < s.heads; ++h) {
        for (std::int64_t t = 0; t < s.context; ++t) attend(b, h, t);
      }
    }
  }

  std::int64_t width() const { return d * shape.heads; }
  std::int64_t entry(std::int64_t b, std::int64_t h, std::int64_t t) const {
    return (b * shape.heads + h) * shape.context + t;
  }
  // Where q (part 0), k (1) or v (2) of a head and token begins in qkv; and its output in out.
  std::int64_t at(std::int64_t b, std::int64_t h, std::int64_t t, int part) const {
    return (b * shape.context + t) * 3 * width() + part * width() + h * d;
  }
  std::int64_t at_out(std::int64_t b, std::int64_t h, std::int64_t t) const {
    return (b * shape.context + t) * width() + h * d;
  }

  void attend(std::int64_t b, std::int64_t h, std::int64_t t) {
    Numbers score;
    double top = -1e300;
    for (std::int64_t j = 0; j <= t; ++j) {
      double dot = 0;
      for (std::int64_t i = 0; i < d; ++i) dot += qkv[at(b, h, t, 0) + i] * qkv[at(b, h, j, 1) + i];
      score.push_back(dot / std::sqrt(static_cast<double>(d)));
      top = std::max(top, score.back());
    }
    double total = 0;
    for (double value : score) total += std::exp(value - top);
    logsumexp[entry(b, h, t)] = top + std::log(total);
    for (std::int64_t j = 0; j <= t; ++j) {
      double const p = std::exp(score[j] - top) / total;
      probability[entry(b, h, t) * shape.context + j] = p;
      for (std::int64_t i = 0; i < d; ++i) out[at_out(b, h, t) + i] += p * qkv[at(b, h, j, 2) + i];
    }
  }

  // The gradient of Σ dout · out.
  Numbers gradient(Numbers const& dout) const {
    Numbers dqkv(qkv.size());
    double const scale = 1.0 / std::sqrt(static_cast<double>(d));
    for (std::int64_t b = 0; b < shape.batch; ++b) {
      for (std::int64_t h = 0; h < shape.heads; ++h) {
        for (std::int64_t t = 0; t < shape.context; ++t) {
          double const* const dy = &dout[at_out(b, h, t)];
          double delta = 0;
          for (std::int64_t i = 0; i < d; ++i) delta += dy[i] * out[at_out(b, h, t) + i];
          for (std::int64_t j = 0; j <= t; ++j) {
            double const p = probability[entry(b, h, t) * shape.context + j];
            double dp = 0;
            for (std::int64_t i = 0; i < d; ++i) dp += dy[i] * qkv[at(b, h, j, 2) + i];
            double const ds = p * (dp - delta) * scale;
            for (std::int64_t i = 0; i < d; ++i) {
              dqkv[at(b, h, t, 0) + i] += ds * qkv[at(b, h, j, 1) + i];
              dqkv[at(b, h, j, 1) + i] += ds * qkv[at(b, h, t, 0) + i];
              dqkv[at(b, h, j, 2) + i] += p * dy[i];
            }
          }
        }
      }
    }
    return dqkv;
  }
};

template <class T>
struct Run {
  AttentionShape shape;
  std::int64_t n, width;
  Matrix<T> qkv, dout, out, dqkv;
  Vector<float> logsumexp, delta;

  Run(AttentionShape const& s, std::int64_t d, double deviation = 1)
      : shape(s), n(s.batch * s.context), width(s.heads * d),
        qkv(n, 3 * width, 2, normal_numbers(n * 3 * width, 1, deviation)),
        dout(n, width, 1, normal_numbers(n * width, 2)), out(n, width, 3), dqkv(n, 3 * width, 4),
        logsumexp(n * s.heads), delta(n * s.heads) {
    attention_forward<T>(Lane(), shape, out, logsumexp, qkv);
    attention_backward<T>(Lane(), shape, dqkv, delta, dout, out, logsumexp, qkv);
  }
};

// q, k and v apart, as a fault of one must not hide behind the size of another.
Numbers part_of(Numbers const& qkv, std::int64_t width, int part) {
  Numbers result;
  for (std::size_t i = 0; i < qkv.size(); ++i) {
    if (static_cast<std::int64_t>(i) / width % 3 == part) result.push_back(qkv[i]);
  }
  return result;
}

double norm(Numbers const& numbers) { return relative_error(numbers, Numbers(numbers.size(), 0.0)); }

// Within `slack` times the usual tolerance.
template <class T>
void check_against(Oracle const& oracle, Numbers const& out, Numbers const& dqkv, Numbers const& dout,
                   double slack = 1) {
  CHECK(relative_error(out, oracle.out) < slack * tolerance<T>);
  Numbers const expected = oracle.gradient(dout);
  for (int part = 0; part < 3; ++part) {
    Numbers const own = part_of(expected, oracle.width(), part);
    Numbers difference = part_of(dqkv, oracle.width(), part);
    for (std::size_t i = 0; i < own.size(); ++i) difference[i] -= own[i];
    // With one key the gradients of q and k are differences of equal numbers, so a share of the whole counts as well.
    double const size = std::max(norm(own), 0.1 * norm(expected));
    INFO("part " << part);
    CHECK(norm(difference) < slack * tolerance<T> * size);
  }
}

template <class T>
void check(AttentionShape const& shape, std::int64_t d, double deviation = 1, double slack = 1) {
  Run<T> const run(shape, d, deviation);
  Oracle const oracle(shape, d, run.qkv.get());
  INFO("B " << shape.batch << " T " << shape.context << " H " << shape.heads << " D " << d);
  CHECK(run.out.padding_is_untouched());
  CHECK(run.dqkv.padding_is_untouched());
  CHECK(relative_error(run.logsumexp.get(), oracle.logsumexp) < tolerance<float>);
  check_against<T>(oracle, run.out.get(), run.dqkv.get(), run.dout.get(), slack);
}

// Attention as models have it, in memory of its own.
template <class T>
struct ModelRun {
  Matrix<T> out, dqkv;
  Vector<float> logsumexp;

  ModelRun(Attention<T> const& attention, Run<T> const& of)
      : out(of.n, of.width), dqkv(of.n, 3 * of.width), logsumexp(of.n * of.shape.heads) {
    Matrix<T> const qkv(of.n, 3 * of.width, 0, of.qkv.get()), dout(of.n, of.width, 0, of.dout.get());
    attention.forward(Lane(), out, logsumexp, qkv);
    attention.backward(Lane(), dqkv, dout, out, logsumexp, qkv);
    Lane().fence("what was given is gone then");
  }
};

template <class T>
void check_model(AttentionShape const& shape, std::int64_t d) {
  Run<T> const tiles(shape, d);
  Oracle const oracle(shape, d, tiles.qkv.get());
  Ledger ledger;
  Attention<T> const attention(shape, d, AttentionWays::all, AttentionPasses::both, ledger);
  ModelRun<T> const run(attention, tiles);
  INFO("B " << shape.batch << " T " << shape.context << " H " << shape.heads << " D " << d << ": "
            << choose_attention(shape, d, dtype_of<T>, AttentionWays::all).text);
  CHECK(relative_error(run.logsumexp.get(), oracle.logsumexp) < tolerance<T>);
  check_against<T>(oracle, run.out.get(), run.dqkv.get(), tiles.dout.get());
  CHECK(relative_error(run.out.get(), tiles.out.get()) < tolerance<T>);
  CHECK(relative_error(run.logsumexp.get(), tiles.logsumexp.get()) < tolerance<T>);
  for (int part = 0; part < 3; ++part) {
    INFO("part " << part);
    CHECK(relative_error(part_of(run.dqkv.get(), tiles.width, part), part_of(tiles.dqkv.get(), tiles.width, part)) <
          tolerance<T>);
  }
  ModelRun<T> const again(attention, tiles);
  CHECK(again.out.get() == run.out.get());
  CHECK(again.dqkv.get() == run.dqkv.get());
}

} // namespace

TEST_CASE("Attention and its gradients agree with double precision for odd shapes") {
  for (std::int64_t context : {1, 3, 33, 65, 130}) {
    for (std::int64_t d : {1, 7, 64, 80}) {
      check<float>({2, context, 3}, d);
      check<bf16>({2, context, 3}, d);
      check<fp16>({2, context, 3}, d);
    }
  }
}

TEST_CASE("Attention with wide heads") {
  check<float>({1, 70, 1}, 128);
  check<float>({1, 70, 1}, 256);
  check<bf16>({1, 70, 2}, 256);
  check<fp16>({1, 70, 2}, 256);
}

TEST_CASE("Attention with scores too large for a plain exponential") {
  check<float>({1, 100, 2}, 16, 6.0, 5.0); // up to 150, which themselves are only exact to 1e-5
}

TEST_CASE("Attention in fp16 with products of queries and keys past its range") {
  check<fp16>({1, 100, 2}, 16, 100.0, 10.0); // up to 150000, exact to 1e-2
}

TEST_CASE("Attention of no windows is no work") {
  Run<float> const run({0, 33, 3}, 7);
  CHECK(run.out.get().empty());
}

TEST_CASE("The gradients of attention are its finite differences") {
  AttentionShape const shape{1, 9, 2};
  std::int64_t const d = 3;
  Run<float> const run(shape, d);
  Numbers const dout = run.dout.get();
  auto const objective = [&](Numbers const& qkv) {
    Oracle const oracle(shape, d, qkv);
    double total = 0;
    for (std::size_t i = 0; i < dout.size(); ++i) total += dout[i] * oracle.out[i];
    return total;
  };
  double const h = 1e-5;
  Numbers at = run.qkv.get();
  Numbers expected;
  for (double& value : at) {
    double const before = value;
    value = before + h;
    double const above = objective(at);
    value = before - h;
    expected.push_back((above - objective(at)) / (2 * h));
    value = before;
  }
  CHECK(relative_error(run.dqkv.get(), expected) < tolerance<float>);
}

TEST_CASE("A query does not see later tokens, to the bit") {
  AttentionShape const shape{1, 130, 1};
  std::int64_t const d = 8, seen = 70;
  Run<float> const run(shape, d);
  Numbers changed = run.qkv.get();
  for (std::size_t i = seen * 3 * d; i < changed.size(); ++i) changed[i] = 50.0 - changed[i];
  Matrix<float> const qkv(130, 3 * d, 0, changed), out(130, d);
  Vector<float> const logsumexp(130);
  attention_forward<float>(Lane(), shape, out, logsumexp, qkv);
  Numbers const before = run.out.get(), after = out.get();
  CHECK(std::equal(before.begin(), before.begin() + seen * d, after.begin()));
  for (std::int64_t i = seen * d; i < 130 * d; ++i) CHECK(before[i] != after[i]);
}

TEST_CASE("A team's scratch is within the fast memory of an accelerator with heads of 64 and 128 columns") {
  using namespace kozero::attention;
  // 48 KiB, of which Kokkos keeps 1026 doubles and an integer for sums over a team.
  std::int64_t const fast = 48 * 1024 - 1026 * 8 - 8 - RowTeam::scratch_alignment;
  for (ScratchUse const& use : {forward_scratch, query_gradient_scratch, key_gradient_scratch}) {
    for (std::int64_t const d : {64, 128}) CHECK(Scratch::bytes(use, d, TeamsOf::accelerator) <= fast);
  }
}

TEST_CASE("Attention of a model is the tile kernel's where there is no library") {
  AttentionShape const shape{2, 33, 3};
  std::int64_t const d = 8;
  Run<float> const run(shape, d);
  Ledger ledger;
  Attention<float> const attention(shape, d, AttentionWays::all, AttentionPasses::both, ledger);
  Matrix<float> const qkv(66, 72, 0, run.qkv.get()), dout(66, 24, 0, run.dout.get()), out(66, 24), dqkv(66, 72);
  Vector<float> const logsumexp(66 * 3);
  attention.forward(Lane(), out, logsumexp, qkv);
  attention.backward(Lane(), dqkv, dout, out, logsumexp, qkv);
  CHECK(out.get() == run.out.get());
  CHECK(logsumexp.get() == run.logsumexp.get());
  CHECK(dqkv.get() == run.dqkv.get());
  CHECK(ledger.peak_bytes(Space::device) == 66 * 3 * 4);
  Attention<float> const generating(shape, d, AttentionWays::all, AttentionPasses::forward, ledger);
  CHECK(ledger.peak_bytes(Space::device) == 66 * 3 * 4);
}

TEST_CASE("Attention of a model in 16 bits agrees with double precision, by whatever way, and repeats its bits") {
  for (auto const& [shape, d] : {std::pair<AttentionShape, std::int64_t>{{2, 96, 3}, 64},
                                 {{1, 130, 2}, 128},
                                 {{3, 64, 5}, 40},
                                 {{1, 1024, 1}, 64}}) {
    check_model<bf16>(shape, d);
    check_model<fp16>(shape, d);
  }
}
