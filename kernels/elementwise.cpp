#include "kernels/elementwise.hpp"

#include "kernels/row_reduce.hpp"

namespace kozero {

namespace {

constexpr std::int64_t parts = 32; // partial sums of a chunk: element i goes to part i mod 32

// Σ of `term` over elements begin … begin + count - 1.
template <class Term>
KOKKOS_FORCEINLINE_FUNCTION double chunk_sum(std::int64_t begin, std::int64_t count, Term const& term) {
  double part[parts] = {};
  std::int64_t i = 0;
  for (; i + parts <= count; i += parts) {
    for (std::int64_t j = 0; j < parts; ++j) part[j] += term(begin + i + j);
  }
  for (std::int64_t j = 0; j < count - i; ++j) part[j] += term(begin + i + j);
  for (std::int64_t step = parts / 2; step > 0; step /= 2) {
    for (std::int64_t j = 0; j < step; ++j) part[j] += part[j + step];
  }
  return part[0];
}

// Each chunk by one thread of a device or host, then a binary tree over the chunks on the host: one shape everywhere.
template <class Term>
double tree_sum(Lane const& lane, char const* label, std::int64_t n, Term const& term) {
  std::int64_t const chunks = (n + element_chunk - 1) / element_chunk;
  if (chunks == 0) return 0.0;
  Kokkos::View<double*, Kokkos::LayoutRight, DeviceMemory> sums(
      Kokkos::view_alloc(Kokkos::WithoutInitializing, "kozero::sum"), static_cast<std::size_t>(chunks));
  for_each_row(
      lane, label, chunks, KOKKOS_LAMBDA(RowTeam const& team, std::int64_t chunk) {
        std::int64_t const begin = chunk * element_chunk;
        std::int64_t const count = n - begin < element_chunk ? n - begin : element_chunk;
        row_once(team, [&] { sums(chunk) = chunk_sum(begin, count, term); });
      });
  lane.fence();
  auto const tree = Kokkos::create_mirror_view_and_copy(HostMemory(), sums);
  std::int64_t left = chunks;
  while (left > 1) {
    for (std::int64_t i = 0; i < left / 2; ++i) tree(i) = tree(2 * i) + tree(2 * i + 1);
    if (left % 2 == 1) tree(left / 2) = tree(left - 1);
    left = (left + 1) / 2;
  }
  return tree(0);
}

} // namespace

template <class T>
void add(Lane const& lane, Vec<T> y, ConstVec<T> a, ConstVec<T> b) {
  for_each_element(
      lane, "kozero::add", rows(y),
      KOKKOS_LAMBDA(std::int64_t i) { y(i) = static_cast<T>(static_cast<float>(a(i)) + static_cast<float>(b(i))); });
}

template <class To, class From>
void convert(Lane const& lane, Vec<To> y, Vec<From const> x) {
  for_each_element(
      lane, "kozero::convert", rows(y),
      KOKKOS_LAMBDA(std::int64_t i) { y(i) = static_cast<To>(static_cast<float>(x(i))); });
}

double sum(Lane const& lane, Vec<float const> x) {
  return tree_sum(
      lane, "kozero::sum", rows(x), KOKKOS_LAMBDA(std::int64_t i) { return static_cast<double>(x(i)); });
}

double sum_of_squares(Lane const& lane, Vec<float const> x) {
  return tree_sum(
      lane, "kozero::sum_of_squares", rows(x), KOKKOS_LAMBDA(std::int64_t i) {
        double const value = static_cast<double>(x(i));
        return value * value;
      });
}

std::int64_t first_non_finite(Lane const& lane, Vec<float const> x) {
  std::int64_t const n = rows(x);
  std::int64_t first = n;
  Kokkos::parallel_reduce(
      "kozero::first_non_finite", Kokkos::RangePolicy<DeviceExec, Kokkos::IndexType<std::int64_t>>(lane.exec(), 0, n),
      KOKKOS_LAMBDA(std::int64_t i, std::int64_t & least) {
        bool const finite = x(i) - x(i) == 0.0f;
        if (!finite && i < least) least = i;
      },
      Kokkos::Min<std::int64_t>(first));
  return first < n ? first : n;
}

template void add(Lane const&, Vec<float>, ConstVec<float>, ConstVec<float>);
template void add(Lane const&, Vec<bf16>, ConstVec<bf16>, ConstVec<bf16>);
template void convert(Lane const&, Vec<float>, Vec<float const>);
template void convert(Lane const&, Vec<float>, Vec<bf16 const>);
template void convert(Lane const&, Vec<bf16>, Vec<float const>);
template void convert(Lane const&, Vec<bf16>, Vec<bf16 const>);

} // namespace kozero
