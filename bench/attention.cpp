// Attention of GPT-2 124M beside the same products as whole matrices: two forward and five backward for each head,
// without softmax, and without the half that causality spares.
#include "kernels/attention.hpp"
#include "bench/pair.hpp"
#include "kernels/gemm.hpp"

namespace {

using namespace kozero;
using namespace kozero::bench;

class Attention {
public:
  explicit Attention(std::int64_t context)
      : shape_{.batch = 2, .context = context, .heads = 12}, qkv_(numbers<float>(ledger_, tokens() * 3 * width())),
        out_(numbers<float>(ledger_, tokens() * width())), dqkv_(numbers<float>(ledger_, tokens() * 3 * width())),
        dout_(numbers<float>(ledger_, tokens() * width())),
        logsumexp_(numbers<float>(ledger_, shape_.batch * shape_.heads * context)),
        delta_(numbers<float>(ledger_, shape_.batch * shape_.heads * context)),
        scores_(numbers<float>(ledger_, context * context)), dscores_(numbers<float>(ledger_, context * context)) {
    forward(); // what the backward pass takes from it
  }

  void forward() const {
    attention_forward(lane_, shape_, make_mat(out_.data(), tokens(), width()), vec(logsumexp_), qkv());
    lane_.fence("bench");
  }
  void backward() const {
    attention_backward(lane_, shape_, make_mat(dqkv_.data(), tokens(), 3 * width()), vec(delta_),
                       make_mat<float const>(dout_.data(), tokens(), width()),
                       make_mat<float const>(out_.data(), tokens(), width()), vec(logsumexp_), qkv());
    lane_.fence("bench");
  }

  void forward_products() const {
    for_each_head([&](Part q, Part k, Part v, Part, Part, Part, Part out) {
      product(scores_.data(), context(), context(), d, rows_of(q), columns_of(k)); // q kᵀ
      product(out.data, out.stride, d, context(), scores(), rows_of(v));           // p v
    });
  }
  void backward_products() const {
    for_each_head([&](Part q, Part k, Part v, Part dq, Part dk, Part dv, Part dout) {
      product(scores_.data(), context(), context(), d, rows_of(q), columns_of(k));     // q kᵀ
      product(dscores_.data(), context(), context(), d, rows_of(dout), columns_of(v)); // dout vᵀ
      product(dv.data, dv.stride, d, context(), transposed_scores(), rows_of(dout));
      product(dq.data, dq.stride, d, context(), scores(), rows_of(k));
      product(dk.data, dk.stride, d, context(), transposed_scores(), rows_of(q));
    });
  }

private:
  static constexpr std::int64_t d = 64;
  std::int64_t context() const { return shape_.context; }
  std::int64_t width() const { return shape_.heads * d; }
  std::int64_t tokens() const { return shape_.batch * shape_.context; }
  static Vec<float> vec(DeviceBuffer<float> const& buffer) { return make_vec(buffer.data(), buffer.size()); }
  Mat<float const> qkv() const { return make_mat<float const>(qkv_.data(), tokens(), 3 * width()); }

  /// [T,D] of one head.
  struct Part {
    float* data;
    std::int64_t stride;
  };
  using Read = Operand<float>::Read;
  static Operand<float> rows_of(Part part) { return {part.data, part.stride, Read::plain}; }
  static Operand<float> columns_of(Part part) { return {part.data, part.stride, Read::transposed}; }
  Operand<float> scores() const { return {scores_.data(), context(), Read::plain}; }
  Operand<float> transposed_scores() const { return {scores_.data(), context(), Read::transposed}; }

  /// c[T,n] = a · b, summed over k.
  void product(float* c, std::int64_t stride, std::int64_t n, std::int64_t k, Operand<float> a,
               Operand<float> b) const {
    gemm<float, float>(lane_, context(), n, k, c, stride, a, b, nullptr, Into::overwrite);
  }

  void for_each_head(auto const& work) const {
    for (std::int64_t sequence = 0; sequence < shape_.batch; ++sequence) {
      for (std::int64_t head = 0; head < shape_.heads; ++head) {
        std::int64_t const row = sequence * context();
        auto const part = [&](DeviceBuffer<float> const& whole, std::int64_t which) {
          return Part{whole.data() + row * 3 * width() + which * width() + head * d, 3 * width()};
        };
        work(part(qkv_, 0), part(qkv_, 1), part(qkv_, 2), part(dqkv_, 0), part(dqkv_, 1), part(dqkv_, 2),
             Part{dout_.data() + row * width() + head * d, width()});
      }
    }
    lane_.fence("bench");
  }

  Ledger ledger_;
  Lane lane_;
  AttentionShape shape_;
  DeviceBuffer<float> qkv_, out_, dqkv_, dout_, logsumexp_, delta_, scores_, dscores_;
};

void forward(benchmark::State& state) {
  Attention const attention(state.range(0));
  measure_pair(
      state, [&] { attention.forward(); }, [&] { attention.forward_products(); });
}
void backward(benchmark::State& state) {
  Attention const attention(state.range(0));
  measure_pair(
      state, [&] { attention.backward(); }, [&] { attention.backward_products(); });
}

void contexts(benchmark::internal::Benchmark* benchmark) {
  benchmark->ArgName("T")->Arg(256)->Arg(1024)->UseManualTime()->Unit(benchmark::kMillisecond);
}
BENCHMARK(forward)->Name("attention/fp32/forward")->Apply(contexts);
BENCHMARK(backward)->Name("attention/fp32/backward")->Apply(contexts);

} // namespace
