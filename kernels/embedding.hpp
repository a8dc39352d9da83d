#pragma once
#include "core/half.hpp"
#include "core/lane.hpp"
#include "core/views.hpp"

namespace kozero {

/// The tokens of a micro-batch grouped by id, so that the rows of one id are summed in a fixed order without atomics:
/// rows positions[starts[g]] … positions[starts[g+1]-1], ascending, all hold the same token. Made by group_tokens.
struct TokenGroups {
  Vec<std::int32_t const> starts;    // [groups + 1]
  Vec<std::int32_t const> positions; // [N]
};

/// x [N,C] = wte [V,C] at tokens [N] + wpe [T,C] at the row's place in its window. N is a multiple of T.
template <class T>
void embedding_forward(Lane const& lane, Mat<T> x, Vec<std::int32_t const> tokens, ConstMat<T> wte, ConstMat<T> wpe);

/// dwte [V,C] and dwpe [T,C] += the rows of dx [N,C] that used them, in ascending order.
template <class T>
void embedding_backward(Lane const& lane, Mat<float> dwte, Mat<float> dwpe, Mat<T const> dx,
                        Vec<std::int32_t const> tokens, TokenGroups const& groups);

} // namespace kozero
