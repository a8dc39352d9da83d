#pragma once
// The four ways to touch device memory: launch, fill, copy and enqueue. All that runs on a device goes through them;
// here are labels for Kokkos' tools, what Activity counts, and the emulated device.
//
//     launch(lane, "kozero::negate", Range{n}, KOKKOS_LAMBDA(std::int64_t i) { x(i) = -x(i); });
//     copy(lane, on_pinned(result), on_device(x), n);
//     lane.fence("example");                             // now result may be read
//
// A functor is copied to the device: it may own nothing, refer to nothing on a stack, and is of 448 bytes at most, 320
// with Teams. Memory that it reads must stay until the lane has come past it.

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
};

/// The same by the host's threads, of which whichever is free takes the next index; with Range they share them always
/// alike.
struct DynamicRange {
  std::int64_t count = 0;
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

// Kokkos puts functor and policy together, and a CUDA launch with 512 bytes or more waits for the one before. Policies
// take up to 64 bytes, those of teams up to 192 with what belongs to them.
inline constexpr std::size_t most_captures = 512 - 64;
inline constexpr std::size_t most_captures_of_teams = 512 - 192;

template <class Functor, std::size_t most>
constexpr void require_launchable() {
#ifndef __CUDACC__ // whose wrapper of a lambda for host and device is not trivial, whatever that captures
  static_assert(std::is_trivially_copyable_v<Functor>, "a kernel may capture no owner of memory");
#endif
  static_assert(sizeof(Functor) <= most, "a kernel's captures must fit in a launch");
}

template <class Exec, class Functor>
void run_range(Exec const& exec, char const* label, Range range, Functor const& functor) {
  using Policy = Kokkos::RangePolicy<Exec, Kokkos::Schedule<Kokkos::Static>, Kokkos::IndexType<std::int64_t>>;
  Kokkos::parallel_for(tool_label(label), Policy(exec, 0, range.count), functor);
}

template <class Functor>
void run_range(HostExec const& exec, char const* label, DynamicRange range, Functor const& functor) {
  using Policy = Kokkos::RangePolicy<HostExec, Kokkos::Schedule<Kokkos::Dynamic>, Kokkos::IndexType<std::int64_t>>;
  Kokkos::parallel_for(tool_label(label), Policy(exec, 0, range.count, Kokkos::ChunkSize(1)), functor);
}

template <class AnyRange, class Functor>
void run_on_host(char const* label, AnyRange range, Functor const& functor) {
  HostExec const exec;
  run_range(exec, label, range, functor);
#if KOKKOS_VERSION >= 30500
  exec.fence(tool_label(label));
#else
  exec.fence();
#endif
}

// Kokkos' own would make a name for itself on the heap at every call.
template <class T>
struct Fill {
  T* to;
  T value;
  KOKKOS_FUNCTION void operator()(std::int64_t i) const { to[i] = value; }
};

#if KOZERO_EMULATED
/// Error where memory is another, or not all of one buffer that lives. Host memory may be any that is not the device's.
void require_memory(void const* p, Space space, std::int64_t bytes, char const* who);
void require_ranges(std::initializer_list<Touched> ranges, char const* who);
#else
using TeamPolicy = Kokkos::TeamPolicy<DeviceExec>;

template <class Functor>
struct TeamBody {
  Functor functor;
  int scratch_level;
  KOKKOS_FUNCTION void operator()(TeamPolicy::member_type const& member) const {
    functor(RowTeam(member, scratch_level), static_cast<std::int64_t>(member.league_rank()));
  }
};

/// Of an accelerator. Not left to Kokkos, whose choice follows the registers that a compiler took: sums over a team
/// have their order from it.
inline constexpr int team_threads = 128;

/// A team is one thread on a host.
inline TeamPolicy team_policy(Lane const& lane, std::int64_t count) {
  if constexpr (runs_on_host<Lane>) {
    return TeamPolicy(lane.exec(), static_cast<int>(count), 1);
  } else {
    return TeamPolicy(lane.exec(), static_cast<int>(count), team_threads);
  }
}
#endif

void copy_bytes(Lane const& lane, void* to, Space to_space, void const* from, Space from_space, std::int64_t bytes);

} // namespace detail

template <class Functor>
void launch(Lane const& lane, char const* label, Range range, Functor const& functor) {
  detail::require_launchable<Functor, detail::most_captures>();
  if (range.count <= 0) return;
  ++activity().kernels;
#if KOZERO_EMULATED
  auto const run = [=] { emulated::for_each_index(range.count, [&](std::int64_t i) { functor(i); }); };
  lane.queue()->push(label, emulated::Entry(run));
#else
  detail::run_range(lane.exec(), label, range, functor);
#endif
  BetweenLaunches::run();
}

template <class Functor>
void launch(Lane const& lane, char const* label, Teams teams, Functor const& functor) {
  detail::require_launchable<Functor, detail::most_captures_of_teams>();
  if (teams.count <= 0) return;
  ++activity().kernels;
#if KOZERO_EMULATED
  auto const run = [=] {
    emulated::for_each_index(teams.count, [&](std::int64_t i) {
      emulated::run_team(emulated::default_team_size, teams.scratch_bytes,
                         [&](emulated::Team const& team) { functor(RowTeam(team), i); });
    });
  };
  lane.queue()->push(label, emulated::Entry(run));
#else
  auto policy = detail::team_policy(lane, teams.count);
  std::int64_t const bytes = teams.scratch_bytes + RowTeam::scratch_alignment; // Kokkos' memory may begin anywhere
  int const level = bytes <= detail::TeamPolicy::scratch_size_max(0) ? 0 : 1;
  if (teams.scratch_bytes > 0) policy.set_scratch_size(level, Kokkos::PerTeam(static_cast<int>(bytes)));
  Kokkos::parallel_for(detail::tool_label(label), policy, detail::TeamBody<Functor>{functor, level});
#endif
  BetweenLaunches::run();
}

/// By the host's threads; it has run when this returns, so it may capture what it likes.
template <class Functor>
void launch(HostLane const&, char const* label, Range range, Functor const& functor) {
  if (range.count > 0) detail::run_on_host(label, range, functor);
}
template <class Functor>
void launch(HostLane const&, char const* label, DynamicRange range, Functor const& functor) {
  if (range.count > 0) detail::run_on_host(label, range, functor);
}

/// `to`[i] = value, i = 0 … n-1.
template <class T, class Memory>
void fill(Lane const& lane, Pointer<T, Memory> to, std::type_identity_t<T> value, std::int64_t n) {
  static_assert(Memory::kind != Space::host, "a device does not reach host memory");
  if (n <= 0) return;
  ++activity().fills;
#if KOZERO_EMULATED
  detail::require_memory(to.address, Memory::kind, n * static_cast<std::int64_t>(sizeof(T)), "kozero::fill");
  auto const run = [=] { std::fill_n(to.address, n, value); };
  lane.queue()->push("kozero::fill", emulated::Entry(run));
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
  detail::run_on_host("kozero::fill", Range{n}, detail::Fill<T>{to.address, value});
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
  detail::require_ranges(reads, label);
  detail::require_ranges(writes, label);
  lane.queue()->push(label, emulated::Entry([call] { call(Lane::Exec()); }));
#else
  call(lane.exec());
#endif
  BetweenLaunches::run();
}

} // namespace kozero
