#pragma once
// The threads that share one index of launch(lane, label, Teams{…}, …): one on a host, a block of an accelerator's, the
// fibres of the emulated device.

#include "core/kokkos.hpp"

#if KOZERO_EMULATED
#include "core/emulated/team.hpp"
#endif

#include <cstdint>

namespace kozero {

/// All threads of a team call the same of these in the same order.
class RowTeam {
public:
  static constexpr int scratch_alignment = 16;

#if KOZERO_EMULATED
  explicit RowTeam(emulated::Team const& team) : team_(&team) {}

  template <class Body>
  void loop(std::int64_t n, Body const& body) const {
    for (std::int64_t i = team_->rank(); i < n; i += team_->size()) body(i);
  }
  template <class Body>
  void once(Body const& body) const {
    if (team_->rank() == 0) body();
  }
  void barrier() const { team_->barrier(); }
  void* scratch(std::int64_t bytes) const { return team_->scratch(bytes); }

  template <class Term>
  float sum(std::int64_t n, Term const& term) const {
    float part = 0;
    loop(n, [&](std::int64_t i) { part += term(i); });
    return joined(part, [](float a, float b) { return a + b; });
  }
  template <class Term>
  float max(std::int64_t n, Term const& term) const {
    float part = -__builtin_huge_valf();
    auto const larger = [](float a, float b) { return a < b ? b : a; };
    loop(n, [&](std::int64_t i) { part = larger(part, term(i)); });
    return joined(part, larger);
  }

private:
  /// Every thread's part, in the order of the threads.
  template <class Combine>
  float joined(float part, Combine const& combine) const {
    team_->shared()[team_->rank()] = part;
    team_->barrier();
    float result = team_->shared()[0];
    for (int rank = 1; rank < team_->size(); ++rank) result = combine(result, team_->shared()[rank]);
    team_->barrier(); // the parts have been read
    return result;
  }

  emulated::Team const* team_;
#else
  using Member = Kokkos::TeamPolicy<DeviceExec>::member_type;

  KOKKOS_FORCEINLINE_FUNCTION RowTeam(Member const& member, int scratch_level)
      : member_(member), scratch_level_(scratch_level) {}

  /// body(i), i = 0 … n-1, by whichever thread. No barrier.
  template <class Body>
  KOKKOS_FORCEINLINE_FUNCTION void loop(std::int64_t n, Body const& body) const {
    Kokkos::parallel_for(Kokkos::TeamVectorRange(member_, n), body);
  }
  /// body() by one thread. No barrier.
  template <class Body>
  KOKKOS_FORCEINLINE_FUNCTION void once(Body const& body) const {
    Kokkos::single(Kokkos::PerTeam(member_), body);
  }
  /// What the threads have written to memory before it, all see after it.
  KOKKOS_FORCEINLINE_FUNCTION void barrier() const { member_.team_barrier(); }
  /// The team's next bytes of the scratch memory that Teams asks for, which hold anything. They begin at a multiple of
  /// scratch_alignment, so that Teams asks for pieces rounded up to it, but for the last.
  KOKKOS_FORCEINLINE_FUNCTION void* scratch(std::int64_t bytes) const {
    return member_.team_scratch(scratch_level_).get_shmem_aligned(static_cast<int>(bytes), scratch_alignment);
  }
  /// Σ term(i), to all threads.
  template <class Term>
  KOKKOS_FORCEINLINE_FUNCTION float sum(std::int64_t n, Term const& term) const {
    float result = 0;
    Kokkos::parallel_reduce(
        Kokkos::TeamVectorRange(member_, n), [&](std::int64_t i, float& s) { s += term(i); }, result);
    return result;
  }
  /// The largest term(i), -inf where there is none, to all threads. NaN terms are passed over.
  template <class Term>
  KOKKOS_FORCEINLINE_FUNCTION float max(std::int64_t n, Term const& term) const {
    float result;
    Kokkos::parallel_reduce(
        Kokkos::TeamVectorRange(member_, n),
        [&](std::int64_t i, float& top) {
          float const value = term(i);
          top = top < value ? value : top;
        },
        Largest(result));
    return result;
  }

private:
  /// Begins at -inf, where Kokkos' own did at the least finite number before version 5.
  struct Largest : Kokkos::Max<float> {
    using reducer = Largest; // NOLINT(readability-identifier-naming): the name that Kokkos looks for
    using Kokkos::Max<float>::Max;
    KOKKOS_INLINE_FUNCTION void init(float& value) const { value = -__builtin_huge_valf(); }
  };

  Member member_;
  int scratch_level_;
#endif
};

} // namespace kozero
