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

/// A separate_lane() that is made when it is first wanted: its owner can be built where Kokkos is not up, for a plan.
class LazyLane {
public:
  operator Lane const&() const {
    if (!lane_) lane_ = separate_lane();
    return *lane_;
  }
  void fence() const { static_cast<Lane const&>(*this).fence(); }

private:
  mutable std::optional<Lane> lane_;
};

/// What is given to `later` from now on runs after all that was given to `earlier` before. The host does not wait.
void order_after(Lane const& later, Lane const& earlier);

} // namespace kozero
