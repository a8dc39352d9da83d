#pragma once
#include "core/lane.hpp"

#include <cstdint>
#include <memory>

namespace kozero {

/// A collective under way. The memory given to it belongs to it until wait() has returned. Waiting twice is harmless;
/// one that dies unwaited waits by itself, and ends the program should that fail.
///
///     Pending sum = collectives.reduce_scatter(lane, whole, partition, Traffic::gradients);
///     …                    // it gets on between launches
///     sum.wait(lane);      // what `lane` gets from now on sees the result
///
/// While an exception unwinds, one that dies abandons its collective: another rank may never come to it, and a rank
/// that waits for it would never get to MPI_Abort. The program must end then without another collective.
class Pending {
public:
  /// What has to be done to finish. Whoever makes collectives owns it.
  class Work {
  public:
    virtual ~Work() = default;
    virtual void finish(Lane const& lane) = 0;
    virtual bool done() const = 0;
    virtual std::int64_t arrived_bytes() const = 0;
    /// The collective is finished, or abandoned; nobody will ask again. Must not wait for other ranks.
    virtual void release() = 0;
  };

  Pending() = default; // already done
  explicit Pending(Work& work) : work_(&work) {}
  Pending(Pending&&) = default;
  Pending& operator=(Pending&& other) noexcept;
  ~Pending();

  /// What `lane` gets from now on runs after the collective. The host waits for other ranks' messages, and for nothing
  /// else.
  void wait(Lane const& lane);
  /// Whether wait() would find nothing to wait for. Asks only: progress() gets things on.
  bool done() const { return !work_ || work_->done(); }
  /// Bytes of this rank's messages that have come since the call that started the collective, while the host did
  /// something else than wait for messages, of whatever collective. 0 after wait(), and by NCCL, of which the device
  /// alone knows.
  std::int64_t arrived_bytes() const { return work_ ? work_->arrived_bytes() : 0; }

private:
  struct Release {
    void operator()(Work* work) const { work->release(); }
  };
  std::unique_ptr<Work, Release> work_;
};

} // namespace kozero
