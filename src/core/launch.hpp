#pragma once
// The four ways to touch device memory: launch, fill, copy and enqueue. All that runs on a device goes through them;
// here are labels for Kokkos' tools, what Activity counts, and the emulated device.
//
//     launch(lane, "kozero::negate", Range{n}, KOKKOS_LAMBDA(std::int64_t i) { x(i) = -x(i); });
//     copy(lane, on_pinned(result), on_device(x), n);
//     lane.fence("example");                             // now result may be read
//
// A functor is copied to the device: it may own nothing, refer to nothing on a stack, and is below 512 bytes (a CUDA
// launch with more waits for the one before). Memory that it reads must stay until the lane has come past it.

#include "core/activity.hpp"
#include "core/between_launches.hpp"
#include "core/event.hpp"
#include "core/lane.hpp"
#include "core/memory.hpp"
#include "core/row_team.hpp"

#if KOZERO_EMULATED
#include "core/emulated/policy.hpp"
#include "core/emulated/queue.hpp"

#include <algorithm>
#endif

#include <cstdint>
#include <initializer_list>
#include <string>
#include <type_traits>

namespace kozero {

/// functor(i) for i = 0 … count-1, in any order.
struct Range {
  std::int64_t count = 0;
  /// How a host's threads share them: always alike, or whoever is free takes the next.
  enum class Schedule { fixed, dynamic } schedule = Schedule::fixed;
};

/// functor(team, i) for i = 0 … count-1, in any order, a RowTeam each.
struct Teams {
  std::int64_t count = 0;
  std::int64_t scratch_bytes = 0; // for each team, in fast memory where they fit
};

/// Memory that a library call reads or writes.
struct Touched {
  void const* begin = nullptr;
  std::int64_t bytes = 0;
};

namespace detail {

// Without tools nobody reads it, and a long one would be a piece of the heap at every launch.
inline std::string tool_label(char const* label) {
  return Kokkos::Tools::profileLibraryLoaded() ? std::string(label) : std::string();
}

template <class Functor>
constexpr void require_launchable() {
#ifndef __CUDACC__ // whose wrapper of a lambda for host and device is not trivial, whatever that captures
  static_assert(std::is_trivially_copyable_v<Functor>, "a kernel may capture no owner of memory");
#endif
  static_assert(sizeof(Functor) < 512, "a kernel's captures must be below 512 bytes");
}

template <class Exec, Range::Schedule schedule, class Functor>
void run_range(Exec const& exec, char const* label, std::int64_t count, Functor const& functor) {
  using Index = Kokkos::IndexType<std::int64_t>;
  if constexpr (schedule == Range::Schedule::dynamic) {
    using Policy = Kokkos::RangePolicy<Exec, Kokkos::Schedule<Kokkos::Dynamic>, Index>;
    Kokkos::parallel_for(tool_label(label), Policy(exec, 0, count, Kokkos::ChunkSize(1)), functor);
  } else {
    using Policy = Kokkos::RangePolicy<Exec, Kokkos::Schedule<Kokkos::Static>, Index>;
    Kokkos::parallel_for(tool_label(label), Policy(exec, 0, count), functor);
  }
}

template <class Exec, class Functor>
void run_range(Exec const& exec, char const* label, Range range, Functor const& functor) {
  if (range.schedule == Range::Schedule::dynamic) {
    run_range<Exec, Range::Schedule::dynamic>(exec, label, range.count, functor);
  } else {
    run_range<Exec, Range::Schedule::fixed>(exec, label, range.count, functor);
  }
}

// Kokkos' own would make a name for itself on the heap at every call.
template <class T>
struct Fill {
  T* to;
  T value;
  KOKKOS_FUNCTION void operator()(std::int64_t i) const { to[i] = value; }
};

#if !KOZERO_EMULATED
using TeamPolicy = Kokkos::TeamPolicy<DeviceExec>;

template <class Functor>
struct TeamBody {
  Functor functor;
  int scratch_level;
  KOKKOS_FUNCTION void operator()(TeamPolicy::member_type const& member) const {
    functor(RowTeam(member, scratch_level), static_cast<std::int64_t>(member.league_rank()));
  }
};

/// A team is one thread on a host.
inline TeamPolicy team_policy(Lane const& lane, std::int64_t count) {
  if constexpr (runs_on_host<Lane>) {
    return TeamPolicy(lane.exec(), static_cast<int>(count), 1);
  } else {
    return TeamPolicy(lane.exec(), static_cast<int>(count), Kokkos::AUTO);
  }
}
#endif

void copy_bytes(Lane const& lane, void* to, Space to_space, void const* from, Space from_space, std::int64_t bytes);

} // namespace detail

template <class Functor>
void launch(Lane const& lane, char const* label, Range range, Functor const& functor) {
  detail::require_launchable<Functor>();
  if (range.count <= 0) return;
  ++activity().kernels;
#if KOZERO_EMULATED
  auto const run = [=] { emulated::for_each_index(range.count, [&](std::int64_t i) { functor(i); }); };
  lane.queue()->push(label, {emulated::Kind::kernel, run});
#else
  detail::run_range(lane.exec(), label, range, functor);
#endif
  BetweenLaunches::run();
}

template <class Functor>
void launch(Lane const& lane, char const* label, Teams teams, Functor const& functor) {
  detail::require_launchable<Functor>();
  if (teams.count <= 0) return;
  ++activity().kernels;
#if KOZERO_EMULATED
  auto const run = [=] {
    emulated::for_each_index(teams.count, [&](std::int64_t i) {
      emulated::run_team(emulated::default_team_size, teams.scratch_bytes,
                         [&](emulated::Team const& team) { functor(RowTeam(team), i); });
    });
  };
  lane.queue()->push(label, {emulated::Kind::kernel, run});
#else
  auto policy = detail::team_policy(lane, teams.count);
  int const level = teams.scratch_bytes <= detail::TeamPolicy::scratch_size_max(0) ? 0 : 1;
  if (teams.scratch_bytes > 0) policy.set_scratch_size(level, Kokkos::PerTeam(static_cast<int>(teams.scratch_bytes)));
  Kokkos::parallel_for(detail::tool_label(label), policy, detail::TeamBody<Functor>{functor, level});
#endif
  BetweenLaunches::run();
}

/// By the host's threads; it has run when this returns, so it may capture what it likes.
template <class Functor>
void launch(HostLane const&, char const* label, Range range, Functor const& functor) {
  if (range.count <= 0) return;
  HostExec const exec;
  detail::run_range(exec, label, range, functor);
  exec.fence();
}

/// `to`[i] = value, i = 0 … n-1.
template <class T, class Memory>
void fill(Lane const& lane, Pointer<T, Memory> to, std::type_identity_t<T> value, std::int64_t n) {
  if (n <= 0) return;
  ++activity().fills;
#if KOZERO_EMULATED
  auto const run = [=] { std::fill_n(to.address, n, value); };
  lane.queue()->push("kozero::fill", {emulated::Kind::kernel, run});
#else
  detail::run_range(lane.exec(), "kozero::fill", Range{n}, detail::Fill<T>{to.address, value});
#endif
  BetweenLaunches::run();
}

/// By the host's threads, at once.
template <class T, class Memory>
void fill(HostLane const&, Pointer<T, Memory> to, std::type_identity_t<T> value, std::int64_t n) {
  static_assert(Memory::kind != Space::device);
  if (n <= 0) return;
  HostExec const exec;
  detail::run_range(exec, "kozero::fill", Range{n}, detail::Fill<T>{to.address, value});
  exec.fence();
}

/// `to`[i] = `from`[i], i = 0 … n-1. Between device and pinned memory, or within device memory, in the lane's order
/// while the host goes on; where either is pageable host memory, the lane is waited for, and it is done when this
/// returns.
template <class T, class To, class U, class From>
void copy(Lane const& lane, Pointer<T, To> to, Pointer<U, From> from, std::int64_t n) {
  static_assert(std::is_same_v<std::remove_const_t<U>, T> && std::is_trivially_copyable_v<T>);
  detail::copy_bytes(lane, to.address, To::kind, from.address, From::kind, n * static_cast<std::int64_t>(sizeof(T)));
}

/// The same where the memories are known at run time.
inline void copy_bytes(Lane const& lane, Site to, Site from, std::int64_t bytes) {
  detail::copy_bytes(lane, const_cast<void*>(to.address), to.space, from.address, from.space, bytes);
}

/// What a library launches by itself. `call` is a callable that captures by value; it runs at once on a host, and on an
/// accelerator gives its work to the lane's stream, which it gets as Lane::Exec. `reads` and `writes`: device memory.
template <class Call>
void enqueue([[maybe_unused]] Lane const& lane, [[maybe_unused]] char const* label,
             [[maybe_unused]] std::initializer_list<Touched> reads,
             [[maybe_unused]] std::initializer_list<Touched> writes, Call const& call) {
  ++activity().library_calls;
#if KOZERO_EMULATED
  lane.queue()->push(label, {emulated::Kind::library, [call] { call(Lane::Exec()); }});
#else
  call(lane.exec());
#endif
  BetweenLaunches::run();
}

} // namespace kozero
