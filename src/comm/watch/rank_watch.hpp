#pragma once
#include "comm/ranks.hpp"
#include "core/error.hpp"

#include <memory>
#include <optional>

namespace kozero {

/// Ends the run when a rank is stuck or lost, as the others would wait for it for ever, and names ranks that are slow.
/// A thread beside the main thread looks at it once a second (core/heartbeat.hpp) and tells ranks 0 and 1, the keepers,
/// by TCP; they tell that they live. Who is at fault says watch::judge. Rank 0 speaks, rank 1 where rank 0 does not,
/// any other where both do not. Seconds count while this process runs, so that a job that was suspended goes on.
///
///     RankWatch watch(*ranks, config.run.stall_limit_s);
///     return watch.over([&] { … });
///
/// It calls no MPI but MPI_Abort, at the end. Ranks that cannot be connected are told of, and the run goes on.
class RankWatch {
public:
  /// Collective. Without a limit, lost and slow ranks alone.
  RankWatch(Ranks& ranks, std::optional<double> stall_limit_s);
  /// The others take a rank that did not leave() for lost.
  ~RankWatch();
  RankWatch(RankWatch const&) = delete;
  RankWatch& operator=(RankWatch const&) = delete;

  /// What `work` returns or throws, after leave() where that is the same on all ranks.
  template <class Work>
  auto over(Work const& work) {
    try {
      auto result = work();
      leave();
      return result;
    } catch (SharedError const&) {
      leave();
      throw;
    }
  }

  /// Nothing is watched from here on. Waits for all ranks, still watched.
  void leave();

private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

} // namespace kozero
