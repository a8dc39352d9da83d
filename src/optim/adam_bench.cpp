#include "optim/adam_bench.hpp"

#include "optim/adamw.hpp"

#include <algorithm>
#include <chrono>
#include <functional>

namespace kozero {

namespace {

enum class Threads { all, one };

constexpr std::int64_t tile = 16384; // elements of the probe that a thread takes at a time, as AdamW's

using Static = Kokkos::RangePolicy<HostExec, Kokkos::Schedule<Kokkos::Static>>;

/// Elements [begin, end) of three arrays, read and written by the loop that the compiler makes of it.
void probe_range(float* a, float* b, float* c, std::int64_t begin, std::int64_t end, float s) {
  host_simd([=] {
    KOZERO_INDEPENDENT
    for (std::int64_t i = begin; i < end; ++i) {
      float const x = a[i];
      float const y = b[i];
      float const z = c[i];
      a[i] = x + s * y; // no fma: it is a call where the processor has none, and then the probe is no probe of memory
      b[i] = y + s * z;
      c[i] = z + s * x;
    }
  });
}

/// The state of a number of parameters, with numbers as training has them: none so small that arithmetic slows down.
template <class T, class G>
class AdamArrays {
public:
  AdamArrays(std::int64_t count, Ledger& ledger)
      : count_(count), master_(ledger, Category::master, "bench", count, Init::none),
        m_(ledger, Category::first_moment, "bench", count, Init::none),
        v_(ledger, Category::second_moment, "bench", count, Init::none),
        gradient_(ledger, Category::gradients, "bench", count, HostBuffer<G>::Init::none),
        parameter_(ledger, Category::parameters, "bench", count, HostBuffer<T>::Init::none) {
    fill();
  }

  static constexpr int bytes_per_parameter = 2 * 3 * sizeof(float) + sizeof(G) + 2 * sizeof(T);

  void step(Threads threads) const {
    AdamWScalars const scalars(OptimizerConfig(), 1e-4, 10, 1.0);
    AdamWShard<T> const shard{count_,    count_,           master_.data(), m_.data(),
                              v_.data(), gradient_.data(), dtype_of<G>,    parameter_.data()};
    if (threads == Threads::one) {
      adamw_step_by_this_thread(shard, scalars);
    } else {
      adamw_step(HostLane(), shard, scalars);
      HostLane().fence();
    }
  }

  /// Leaves the numbers as they are.
  void probe(Threads threads) const {
    std::int64_t const tiles = (count_ + tile - 1) / tile;
    float const zero = 0;
    auto const run_tile = [=, a = master_.data(), b = m_.data(), c = v_.data(), count = count_](std::int64_t index) {
      probe_range(a, b, c, index * tile, std::min(count, (index + 1) * tile), zero);
    };
    if (threads == Threads::one) {
      for (std::int64_t index = 0; index < tiles; ++index) run_tile(index);
    } else {
      Kokkos::parallel_for("kozero::bench::probe", Static(0, tiles), run_tile);
      HostExec().fence();
    }
  }

private:
  using Init = HostBuffer<float>::Init;

  // By the threads that will use it.
  void fill() {
    Kokkos::parallel_for("kozero::bench::fill", Static(0, count_),
                         [master = master_.data(), m = m_.data(), v = v_.data(), gradient = gradient_.data(),
                          parameter = parameter_.data()](std::int64_t i) {
                           float const value = static_cast<float>(i % 17 - 8) * 0.02f + 0.01f;
                           master[i] = value;
                           m[i] = 0.1f * value;
                           v[i] = 0.01f * value * value;
                           gradient[i] = static_cast<G>(0.5f * value);
                           parameter[i] = static_cast<T>(value);
                         });
    HostExec().fence();
  }

  std::int64_t count_;
  HostBuffer<float> master_, m_, v_;
  HostBuffer<G> gradient_;
  HostBuffer<T> parameter_;
};

/// A type in the deck's words.
std::string word_of(DType type) { return type == DType::f32 ? "fp32" : name_of(type); }

double median(std::vector<double> values) {
  auto const middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

double seconds_of(std::function<void()> const& work, std::int64_t times) {
  auto const begin = std::chrono::steady_clock::now();
  for (std::int64_t i = 0; i < times; ++i) work();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count() / static_cast<double>(times);
}

/// The row of one number of threads. Step and probe of a round are compared with each other, so that what else goes on
/// on the host touches both.
template <class T, class G>
AdamBenchRow measure(AdamArrays<T, G> const& arrays, std::int64_t count, Threads threads) {
  constexpr int rounds = 7;
  std::int64_t const times = std::max<std::int64_t>(1, 2'000'000 / count); // or a small count is over too soon
  constexpr int bytes = AdamArrays<T, G>::bytes_per_parameter;
  constexpr int probe_bytes = 2 * 3 * sizeof(float);
  std::vector<double> steps, probes, shares;
  for (int round = 0; round < rounds; ++round) {
    probes.push_back(seconds_of([&] { arrays.probe(threads); }, times));
    steps.push_back(seconds_of([&] { arrays.step(threads); }, times));
    shares.push_back(bytes * probes.back() / (probe_bytes * steps.back()));
  }
  double const ns = median(steps) / static_cast<double>(count) * 1e9;
  return {.compute = word_of(dtype_of<T>),
          .gradients = word_of(dtype_of<G>),
          .threads = threads == Threads::all ? static_cast<int>(HostExec().concurrency()) : 1,
          .bytes_per_parameter = bytes,
          .ns_per_parameter = ns,
          .gb_per_s = bytes / ns,
          .probe_gb_per_s = probe_bytes * static_cast<double>(count) / median(probes) * 1e-9,
          .share = median(shares)};
}

template <class T, class G>
void add_rows(std::vector<AdamBenchRow>& rows, std::int64_t count, Ledger& ledger) {
  AdamArrays<T, G> const arrays(count, ledger);
  rows.push_back(measure(arrays, count, Threads::all));
  if (rows.back().threads > 1) rows.push_back(measure(arrays, count, Threads::one));
}

template <class T, class G>
double quick_ns(std::int64_t count) {
  Ledger own;
  AdamArrays<T, G> const arrays(count, own);
  std::vector<double> steps;
  for (int i = 0; i < 3; ++i) steps.push_back(seconds_of([&] { arrays.step(Threads::all); }, 1));
  return *std::min_element(steps.begin(), steps.end()) / static_cast<double>(count) * 1e9; // others may be at work now
}

template <class T>
double quick_ns(std::int64_t count, DType gradients) {
  return gradients == DType::f32 ? quick_ns<T, float>(count) : quick_ns<T, T>(count);
}

} // namespace

std::vector<AdamBenchRow> bench_adam(std::int64_t parameters, Ledger& ledger) {
  std::vector<AdamBenchRow> rows;
  add_rows<bf16, bf16>(rows, parameters, ledger);
  add_rows<bf16, float>(rows, parameters, ledger);
  add_rows<float, float>(rows, parameters, ledger);
  return rows;
}

std::vector<std::string> adam_bench_warnings(std::vector<AdamBenchRow> const& rows, HostOffer const& offer) {
  std::vector<std::string> warnings;
  for (AdamBenchRow const& row : rows) {
    if (row.share >= 0.5) continue;
    std::string cause = "other programs on this host, or memory of another socket; stop them, or bind ranks to sockets";
    if (row.threads > offer.allowed) {
      cause = fmt::format("{} threads run on {} processors; set OMP_NUM_THREADS to those, or leave it unset",
                          row.threads, offer.allowed);
    } else if (offer.target == HostTarget::baseline) {
      cause = "this processor has no AVX2 and FMA; offload to a newer host";
    } else if (offer.allowed == 1 && offer.processors > 1) {
      cause = fmt::format("this process may run on 1 of {} processors; widen the launcher's binding, or the job's "
                          "cores a rank",
                          offer.processors);
    }
    warnings.push_back(fmt::format("AdamW of {} with gradients of {} and {} threads reaches {:.2f} of what memory "
                                   "gives ({})",
                                   row.compute, row.gradients, row.threads, row.share, cause));
  }
  return warnings;
}

double measure_host_adam_ns_per_parameter(std::int64_t parameters, DType compute, DType gradients) {
  // Few enough to be quick, enough not to fit the caches of the threads that share them.
  std::int64_t const threads = HostExec().concurrency();
  std::int64_t const count = std::min(parameters, std::clamp<std::int64_t>(threads << 20, 2 << 20, 16 << 20));
  return with_float_type(compute, [&]<class T>(T) { return quick_ns<T>(count, gradients); });
}

} // namespace kozero
