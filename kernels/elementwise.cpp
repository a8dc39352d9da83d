#include "kernels/elementwise.hpp"

#include "kernels/chunk_sums.hpp"
#include "kernels/flat.hpp"

namespace kozero {

namespace {

struct Value {
  float const* x;
  KOKKOS_FORCEINLINE_FUNCTION double operator()(std::int64_t i) const { return static_cast<double>(x[i]); }
};

} // namespace

template <class T>
void add(Lane const& lane, Vec<T> y, ConstVec<T> a, ConstVec<T> b) {
  for_each_element(
      lane, "kozero::add", rows(y),
      KOKKOS_LAMBDA(std::int64_t i) { y(i) = static_cast<T>(static_cast<float>(a(i)) + static_cast<float>(b(i))); });
}

double sum(Lane const& lane, Vec<float const> x) {
  std::vector<double> sums;
  detail::append_chunk_sums(lane, "kozero::sum", rows(x), Value{x.data()}, sums);
  return pairwise_sum(sums);
}

template void add(Lane const&, Vec<float>, ConstVec<float>, ConstVec<float>);
template void add(Lane const&, Vec<bf16>, ConstVec<bf16>, ConstVec<bf16>);
template void add(Lane const&, Vec<fp16>, ConstVec<fp16>, ConstVec<fp16>);

} // namespace kozero
