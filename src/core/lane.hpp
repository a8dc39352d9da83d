#pragma once
#include "core/kokkos.hpp"

#include <optional>

namespace kozero {

/// An execution-space instance with its order of work: a stream on a GPU, plain program order on a CPU.
/// Work given to one lane runs in the order it was given. Only staging, logging and saving fence.
template <class Exec>
class BasicLane {
public:
  BasicLane() = default;
  explicit BasicLane(Exec exec) : exec_(std::move(exec)) {}
  Exec const& exec() const { return exec_; }
  void fence() const { exec_.fence(); }

private:
  Exec exec_;
};

using Lane = BasicLane<DeviceExec>;
using HostLane = BasicLane<HostExec>;

/// A lane beside the others: a stream of its own on an accelerator, the default instance on a host.
Lane separate_lane();

/// The lane that a process' main work is given to: the default instance.
inline Lane default_lane() { return Lane(); }

/// A lane that is made when it is first wanted: its owner can be built where Kokkos is not up, for a plan.
class LazyLane {
public:
  explicit LazyLane(Lane (*make)() = separate_lane) : make_(make) {}
  operator Lane const&() const {
    if (!lane_) lane_ = make_();
    return *lane_;
  }
  void fence() const { static_cast<Lane const&>(*this).fence(); }

private:
  Lane (*make_)();
  mutable std::optional<Lane> lane_;
};

/// What is given to `later` from now on runs after all that was given to `earlier` before. The host does not wait.
void order_after(Lane const& later, Lane const& earlier);

} // namespace kozero
