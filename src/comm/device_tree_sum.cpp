#include "comm/device_tree_sum.hpp"

#include "core/error.hpp"
#include "core/half.hpp"
#include "core/launch.hpp"
#include "core/packs.hpp"

#include <type_traits>

namespace kozero {

namespace {

// Numbers that are added at once: k neighbours in fp32, or one of another type.
template <int k>
KOKKOS_FORCEINLINE_FUNCTION Floats<k> plus(Floats<k> const& a, Floats<k> const& b) {
  return map([](float x, float y) { return x + y; }, a, b);
}
template <class T>
struct One {
  T value;
};
template <class T>
KOKKOS_FORCEINLINE_FUNCTION One<T> plus(One<T> const& a, One<T> const& b) {
  return {static_cast<T>(a.value + b.value)};
}

template <class In>
struct Source {
  char const* first;
  std::int64_t distance;
  In const* own_place;
  int own;
  int count;

  KOKKOS_FORCEINLINE_FUNCTION In const* of(int rank) const {
    return rank == own ? own_place : reinterpret_cast<In const*>(first + rank * distance);
  }
  KOKKOS_FORCEINLINE_FUNCTION Source shifted(std::int64_t first_bytes, std::int64_t own_bytes) const {
    auto const* const place = reinterpret_cast<In const*>(reinterpret_cast<char const*>(own_place) + own_bytes);
    return {first + first_bytes, distance, place, own, count};
  }
};

template <class In, int k>
KOKKOS_FORCEINLINE_FUNCTION auto load_numbers(In const* from, Place<k> at) {
  if constexpr (std::is_same_v<In, float> || is_half<In>) {
    return detail::load<k>(from + at.begin);
  } else {
    return One<In>{from[at.begin]};
  }
}

/// Of ranks begin … begin + n - 1, n <= most, a power of two. All in registers.
template <int most, class In, int k>
KOKKOS_FORCEINLINE_FUNCTION auto sum_few(Source<In> const& from, int begin, int n, Place<k> at) {
  if constexpr (most == 1) {
    return load_numbers(from.of(begin), at);
  } else {
    constexpr int half = most / 2;
    auto const left = sum_few<half>(from, begin, n < half ? n : half, at);
    if (n <= half) return left;
    return plus(left, sum_few<half>(from, begin + half, n - half, at));
  }
}

/// Runs of so many ranks are subtrees of the tree, which over the runs is a tree again.
constexpr int ranks_of_run = 8;
/// Sums of 1, 2, 4, … runs that stand side by side at most.
constexpr int most_held = 12;
constexpr int most_ranks = ranks_of_run << (most_held - 1);

/// As a binary counter adds: where two sums of as many runs stand side by side, they are added. What is left at the
/// end, from the smallest on, is what has gone up without a neighbour.
template <class In, int k>
KOKKOS_FORCEINLINE_FUNCTION auto sum_many(Source<In> const& from, Place<k> at) {
  decltype(load_numbers(from.of(0), at)) held[most_held];
  int n_held = 0;
  int run = 0;
  for (int begin = 0; begin < from.count; begin += ranks_of_run, ++run) {
    int const left = from.count - begin;
    auto sum = sum_few<ranks_of_run>(from, begin, left < ranks_of_run ? left : ranks_of_run, at);
    for (int bits = run; bits % 2 == 1; bits /= 2) sum = plus(held[--n_held], sum);
    held[n_held++] = sum;
  }
  auto sum = held[--n_held];
  while (n_held > 0) sum = plus(held[--n_held], sum);
  return sum;
}

enum class Ranks { few, many };

template <class In, class Out, Ranks ranks>
struct SumBody {
  Source<In> of_first;
  Out* to_first;
  std::int64_t n; // of each of a series
  SumSeries series;

  template <int k>
  KOKKOS_FORCEINLINE_FUNCTION void operator()(Place<k> at) const {
    if (series.count == 1) return sum(of_first, to_first, at);
    std::int64_t const number = at.begin / n;
    sum(of_first.shifted(number * series.addends_bytes, number * series.own_bytes),
        reinterpret_cast<Out*>(reinterpret_cast<char*>(to_first) + number * series.out_bytes),
        Place<k>{at.begin - number * n});
  }
  template <int k>
  KOKKOS_FORCEINLINE_FUNCTION void sum(Source<In> const& from, Out* to, Place<k> at) const {
    if constexpr (ranks == Ranks::few) {
      put(to, at, sum_few<ranks_of_run>(from, 0, from.count, at));
    } else {
      put(to, at, sum_many(from, at));
    }
  }
  template <int k>
  KOKKOS_FORCEINLINE_FUNCTION void put(Out* to, Place<k> at, Floats<k> const& sum) const {
    detail::store<k>(to + at.begin, sum);
  }
  template <class T>
  KOKKOS_FORCEINLINE_FUNCTION void put(Out* to, Place<1> at, One<T> const& sum) const {
    to[at.begin] = sum.value;
  }
};

template <class In, class Out>
void give_sum(Lane const& lane, DeviceAddends const& addends, void* untyped_out, std::int64_t n,
              SumSeries const& series) {
  auto const* const own = static_cast<In const*>(addends.own_place);
  auto* const out = static_cast<Out*>(untyped_out);
  Source<In> const from{static_cast<char const*>(addends.first), addends.distance_bytes, own, addends.own,
                        addends.count};
  constexpr int k = std::is_same_v<In, float> || is_half<In> ? pack_size<In> : 1;
  KOZERO_ASSERT(series.count == 1 || n % 8 == 0); // no pack is of two sums
  auto const is_aligned = [](auto... numbers) { return ((numbers % 16 == 0) && ...); };
  bool const aligned = is_aligned(reinterpret_cast<std::uintptr_t>(addends.first),
                                  reinterpret_cast<std::uintptr_t>(own), reinterpret_cast<std::uintptr_t>(out),
                                  addends.distance_bytes, series.addends_bytes, series.own_bytes, series.out_bytes);
  Packs const packs = aligned ? Packs::whole : Packs::single;
  char const* const label = "kozero::tree_sum::device";
  if (addends.count <= ranks_of_run) {
    launch_packs<k>(lane, label, series.count * n, packs, SumBody<In, Out, Ranks::few>{from, out, n, series});
  } else {
    launch_packs<k>(lane, label, series.count * n, packs, SumBody<In, Out, Ranks::many>{from, out, n, series});
  }
}

} // namespace

void device_tree_sum(Lane const& lane, DType in, DeviceAddends const& addends, DType out_type, void* out,
                     std::int64_t n, SumSeries const& series) {
  KOZERO_ASSERT(0 <= addends.own && addends.own < addends.count && addends.count <= most_ranks);
  if (n == 0 || series.count == 0) return;
  auto const give = [&]<class In, class Out>(In, Out) { give_sum<In, Out>(lane, addends, out, n, series); };
  auto const types = std::pair(in, out_type);
  if (types == std::pair(DType::f32, DType::f32)) return give(0.0F, 0.0F);
  if (types == std::pair(DType::bf16, DType::bf16)) return give(bf16(), bf16());
  if (types == std::pair(DType::f16, DType::f16)) return give(fp16(), fp16());
  if (types == std::pair(DType::bf16, DType::f32)) return give(bf16(), 0.0F);
  if (types == std::pair(DType::f16, DType::f32)) return give(fp16(), 0.0F);
  if (types == std::pair(DType::f32, DType::bf16)) return give(0.0F, bf16());
  if (types == std::pair(DType::f32, DType::f16)) return give(0.0F, fp16());
  if (types == std::pair(DType::f64, DType::f64)) return give(0.0, 0.0);
  if (types == std::pair(DType::i64, DType::i64)) return give(std::int64_t{}, std::int64_t{});
  if (types == std::pair(DType::i32, DType::i32)) return give(std::int32_t{}, std::int32_t{});
  throw Error(fmt::format("arrays of type {} have no sum over ranks of type {} (a fault of kozero); please report it",
                          name_of(in), name_of(out_type)));
}

} // namespace kozero
