#include "kernels/elementwise.hpp"

#include "kernels/row_reduce.hpp"

namespace kozero {

template <class T>
void add(Lane const& lane, Vec<T> y, ConstVec<T> a, ConstVec<T> b) {
  for_each_element(
      lane, "kozero::add", rows(y),
      KOKKOS_LAMBDA(std::int64_t i) { y(i) = static_cast<T>(static_cast<float>(a(i)) + static_cast<float>(b(i))); });
}

template void add(Lane const&, Vec<float>, ConstVec<float>, ConstVec<float>);
template void add(Lane const&, Vec<bf16>, ConstVec<bf16>, ConstVec<bf16>);
template void add(Lane const&, Vec<fp16>, ConstVec<fp16>, ConstVec<fp16>);

} // namespace kozero
