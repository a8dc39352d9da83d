#pragma once
#include "core/kokkos.hpp"

#include <memory>
#include <optional>

namespace kozero {

namespace emulated {
class Queue;
}

/// An order of work on the device: a stream of an accelerator, a queue of the emulated device, plain program order on a
/// host. Work given to one lane runs in the order it was given, beside the host and other lanes. What may be given is
/// in core/launch.hpp; how lanes wait for each other in core/event.hpp.
class Lane {
public:
  using Exec = DeviceExec;
  /// The default one, which a process' main work is given to.
  Lane();
  /// The host waits until all that the lane was given has run. `why` names the fence, in Activity and to tools; all
  /// names stand in doc/architecture.md.
  void fence(char const* why) const;
  /// The same for copies of a lane and, on an accelerator, for no other one. On a host there is one lane, and this is
  /// null.
  void const* id() const;

#if KOZERO_EMULATED
  explicit Lane(std::shared_ptr<emulated::Queue> queue) : queue_(std::move(queue)) {}
  char const* name() const;
  std::shared_ptr<emulated::Queue> const& queue() const { return queue_; }
#else
  Lane(Exec exec, char const* name) : exec_(exec), name_(name) {}
  char const* name() const { return name_; }
  /// For what launches: core/launch.hpp, and libraries in enqueue().
  Exec const& exec() const { return exec_; }
#endif

private:
#if KOZERO_EMULATED
  std::shared_ptr<emulated::Queue> queue_;
#else
  Exec exec_;
  char const* name_ = "default lane";
#endif
};

/// The host's threads: what they are given has run when the call returns.
class HostLane {
public:
  using Exec = HostExec;
};

/// Whether work on a lane of that type runs as loops of the host's threads, which vectorise, and not as threads of an
/// accelerator, which share them.
template <class AnyLane>
inline constexpr bool runs_on_host = !KOZERO_EMULATED && !KOZERO_HAS_ACCELERATOR;
template <>
inline constexpr bool runs_on_host<HostLane> = true;

/// A lane beside the others; on a host the only one there is. `name`, a literal, is for people.
Lane separate_lane(char const* name = "separate lane");

/// The lane that a process' main work is given to.
inline Lane default_lane() { return Lane(); }

/// A lane that is made when it is first wanted: its owner can be built where Kokkos is not up, for a plan. A separate
/// one where it has a name, else the default one.
class LazyLane {
public:
  explicit LazyLane(char const* name = nullptr) : name_(name) {}
  operator Lane const&() const { return get(); }
  Lane const& get() const {
    if (!lane_) lane_ = name_ ? separate_lane(name_) : default_lane();
    return *lane_;
  }
  void fence(char const* why) const { get().fence(why); }

private:
  char const* name_;
  mutable std::optional<Lane> lane_;
};

} // namespace kozero
