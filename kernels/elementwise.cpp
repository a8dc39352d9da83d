#include "kernels/elementwise.hpp"

#include "kernels/row_reduce.hpp"

namespace kozero {

namespace {

template <class T>
struct Add {
  Vec<T> y;
  Vec<T const> a, b;
  template <int k>
  KOKKOS_FORCEINLINE_FUNCTION void operator()(Place<k> at) const {
    store(y, at, map([](float left, float right) { return left + right; }, load(a, at), load(b, at)));
  }
};

} // namespace

template <class T>
void add(Lane const& lane, Vec<T> y, ConstVec<T> a, ConstVec<T> b) {
  constexpr int k = pack_size<T>;
  for_each_element<k>(lane, "kozero::add", rows(y), packs_of<k>(y, a, b), Add<T>{y, a, b});
}

template void add(Lane const&, Vec<float>, ConstVec<float>, ConstVec<float>);
template void add(Lane const&, Vec<bf16>, ConstVec<bf16>, ConstVec<bf16>);
template void add(Lane const&, Vec<fp16>, ConstVec<fp16>, ConstVec<fp16>);

} // namespace kozero
