#include "optim/adam_bench.hpp"

#include "core/launch.hpp"
#include "optim/adamw.hpp"

#include <algorithm>
#include <chrono>
#include <functional>
#include <limits>

namespace kozero {

namespace {

enum class Threads { all, one };
enum class Moments { warm, cold };
enum class Result { apart, in_master }; // where new parameters go: fp32 ones on the device are the master

constexpr std::int64_t tile = 16384;          // elements of the probe that a thread takes at a time, as AdamW's
constexpr std::int64_t cold_limit = 16 << 20; // parameters that are measured cold: too many for caches
constexpr std::int64_t cold_updates = 32;     // that a cold row lives
constexpr std::int64_t cold_crossing = 4;     // in which the moments become subnormal, a row of a model at a time
constexpr std::int64_t row_elements = 1024;
constexpr float least_normal = std::numeric_limits<float>::min();

/// base^exponent, for a small one.
float power(double base, int exponent) {
  double result = 1;
  for (int i = 0; i < exponent; ++i) result *= base;
  return static_cast<float>(result);
}

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

/// The state of a number of parameters.
template <class T, class G>
class AdamArrays {
public:
  AdamArrays(std::int64_t count, Result result, Ledger& ledger)
      : count_(count), result_(result), master_(ledger, Category::master, "bench", count, Init::none),
        m_(ledger, Category::first_moment, "bench", count, Init::none),
        v_(ledger, Category::second_moment, "bench", count, Init::none),
        gradient_(ledger, Category::gradients, "bench", count, HostBuffer<G>::Init::none),
        parameter_(ledger, Category::parameters, "bench", result == Result::apart ? count : 0,
                   HostBuffer<T>::Init::none) {
    fill(Moments::warm, count);
  }

  int bytes_per_parameter() const {
    return static_cast<int>(6 * sizeof(float) + sizeof(G) + (result_ == Result::apart ? 2 * sizeof(T) : 0));
  }
  std::int64_t count() const { return count_; }

  /// Of the first `count` parameters.
  void step(Threads threads, std::int64_t count) const {
    AdamWScalars const scalars(OptimizerConfig(), 1e-4, 10, 1.0);
    AdamWShard<T> const shard{.count = count,
                              .decay_count = count,
                              .master = master_.data(),
                              .m = m_.data(),
                              .v = v_.data(),
                              .gradient = gradient_.data(),
                              .gradient_type = dtype_of<G>,
                              .parameter = result_ == Result::apart ? parameter_.data() : nullptr};
    if (threads == Threads::one) {
      adamw_step_by_this_thread(shard, scalars);
    } else {
      adamw_step(HostLane(), shard, scalars);
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
      launch(HostLane(), "kozero::bench::probe", Range{tiles}, run_tile);
    }
  }

  /// The first `count` parameters, by the threads that will use them. Warm: as training has them, nowhere so small that
  /// arithmetic slows down. Cold: rows that have had no gradient for long.
  void fill(Moments moments, std::int64_t count) const {
    launch(HostLane(), "kozero::bench::fill", Range{count},
           [cold = moments == Moments::cold, betas = OptimizerConfig().betas, master = master_.data(), m = m_.data(),
            v = v_.data(), gradient = gradient_.data(),
            parameter = result_ == Result::apart ? parameter_.data() : nullptr](std::int64_t i) {
             float const value = static_cast<float>(i % 17 - 8) * 0.02f + 0.01f;
             // Subnormal after so many updates.
             int const left = static_cast<int>(i / row_elements % cold_crossing) + 1;
             master[i] = value;
             m[i] = cold ? least_normal / power(betas[0], left) : 0.1f * value;
             v[i] = cold ? least_normal / power(betas[1], left) : 0.01f * value * value;
             gradient[i] = static_cast<G>(cold ? 0.0f : 0.5f * value);
             if (parameter) parameter[i] = static_cast<T>(value);
           });
  }

private:
  using Init = HostBuffer<float>::Init;

  std::int64_t count_;
  Result result_;
  HostBuffer<float> master_, m_, v_;
  HostBuffer<G> gradient_;
  HostBuffer<T> parameter_;
};

/// A type in the deck's words.
std::string word_of(DType type) { return type == DType::f32 ? "fp32" : name_of(type); }

/// Of what `figure` says of each round.
template <class Round, class Figure>
double median(std::span<Round const> rounds, Figure const& figure) {
  std::vector<double> values;
  for (Round const& round : rounds) values.push_back(figure(round));
  auto const middle = values.begin() + std::ssize(values) / 2;
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

double seconds_of(std::function<void()> const& work, std::int64_t times) {
  auto const begin = std::chrono::steady_clock::now();
  for (std::int64_t i = 0; i < times; ++i) work();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count() / static_cast<double>(times);
}

/// The rounds of one number of threads.
template <class T, class G>
AdamBenchRow measure(AdamArrays<T, G> const& arrays, Threads threads) {
  constexpr int rounds = 7;
  std::int64_t const count = arrays.count();
  std::int64_t const times = std::max<std::int64_t>(1, 2'000'000 / count); // or a small count is over too soon
  std::vector<AdamBenchRound> measured;
  for (int round = 0; round < rounds; ++round) {
    double const probe_s = seconds_of([&] { arrays.probe(threads); }, times);
    measured.push_back({.step_s = seconds_of([&] { arrays.step(threads, count); }, times), .probe_s = probe_s});
  }
  return adam_bench_row({.compute = word_of(dtype_of<T>),
                         .gradients = word_of(dtype_of<G>),
                         .threads = threads == Threads::all ? static_cast<int>(HostExec().concurrency()) : 1,
                         .bytes_per_parameter = arrays.bytes_per_parameter()},
                        count, measured);
}

/// Warm and cold take turns too.
template <class T, class G>
ColdRate measure_cold(AdamArrays<T, G> const& arrays, Threads threads) {
  constexpr int rounds = 3;
  std::int64_t const count = std::min(arrays.count(), cold_limit);
  auto const ns_of = [&](Moments moments) {
    arrays.fill(moments, count);
    return seconds_of([&] { arrays.step(threads, count); }, cold_updates) / static_cast<double>(count) * 1e9;
  };
  std::vector<ColdRound> measured;
  for (int round = 0; round < rounds; ++round) {
    double const warm = ns_of(Moments::warm);
    measured.push_back({.warm_ns_per_parameter = warm, .cold_ns_per_parameter = ns_of(Moments::cold)});
  }
  arrays.fill(Moments::warm, count);
  return cold_rate(measured);
}

template <class T, class G>
void add_rows(std::vector<AdamBenchRow>& rows, std::int64_t count, Result result, ColdRows cold, Ledger& ledger) {
  AdamArrays<T, G> const arrays(count, result, ledger);
  for (Threads const threads : {Threads::all, Threads::one}) {
    rows.push_back(measure(arrays, threads));
    if (cold == ColdRows::measured) rows.back().cold = measure_cold(arrays, threads);
    if (rows.back().threads == 1) break;
  }
}

template <class T, class G>
double quick_ns(std::int64_t count) {
  Ledger own;
  AdamArrays<T, G> const arrays(count, Result::apart, own); // as offload has it
  std::vector<double> steps;
  for (int i = 0; i < 3; ++i) steps.push_back(seconds_of([&] { arrays.step(Threads::all, count); }, 1));
  return *std::min_element(steps.begin(), steps.end()) / static_cast<double>(count) * 1e9; // others may be at work now
}

template <class T>
double quick_ns(std::int64_t count, DType gradients) {
  return gradients == DType::f32 ? quick_ns<T, float>(count) : quick_ns<T, T>(count);
}

} // namespace

AdamBenchRow adam_bench_row(AdamBenchRow kind, std::int64_t parameters, std::span<AdamBenchRound const> rounds) {
  constexpr int probe_bytes = 6 * sizeof(float); // three arrays in and out
  double const count = static_cast<double>(parameters);
  kind.ns_per_parameter = median(rounds, [&](auto const& round) { return round.step_s / count * 1e9; });
  kind.gb_per_s = kind.bytes_per_parameter / kind.ns_per_parameter;
  kind.probe_gb_per_s = probe_bytes * count / median(rounds, [](auto const& round) { return round.probe_s; }) * 1e-9;
  kind.share = median(rounds, [&](auto const& round) {
    return kind.bytes_per_parameter * round.probe_s / (probe_bytes * round.step_s);
  });
  return kind;
}

ColdRate cold_rate(std::span<ColdRound const> rounds) {
  return {.warm_ns_per_parameter = median(rounds, [](auto const& round) { return round.warm_ns_per_parameter; }),
          .cold_ns_per_parameter = median(rounds, [](auto const& round) { return round.cold_ns_per_parameter; }),
          .ratio = median(rounds,
                          [](auto const& round) { return round.cold_ns_per_parameter / round.warm_ns_per_parameter; })};
}

std::vector<AdamBenchRow> bench_adam(std::int64_t parameters, ColdRows cold, Ledger& ledger) {
  std::vector<AdamBenchRow> rows;
  add_rows<bf16, bf16>(rows, parameters, Result::apart, cold, ledger);
  add_rows<bf16, float>(rows, parameters, Result::apart, cold, ledger);
  add_rows<float, float>(rows, parameters, Result::in_master, cold, ledger);
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
