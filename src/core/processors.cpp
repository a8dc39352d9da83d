#include "core/processors.hpp"

#include <sched.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <thread>

namespace kozero {

ProcessorMask allowed_processors() {
  ProcessorMask mask;
  cpu_set_t set;
  if (sched_getaffinity(0, sizeof set, &set) == 0) {
    for (std::size_t p = 0; p < mask.size() && p < CPU_SETSIZE; ++p) mask[p] = CPU_ISSET(p, &set);
  } else {
    // The system has more processors than the set: take it that this process may use all.
    std::size_t const count = std::max(1u, std::thread::hardware_concurrency());
    for (std::size_t p = 0; p < std::min(count, mask.size()); ++p) mask.set(p);
  }
  return mask;
}

void run_on_all_processors() noexcept try {
  namespace fs = std::filesystem;
  cpu_set_t all;
  CPU_ZERO(&all);
  std::error_code end;
  for (fs::directory_iterator task("/proc/self/task", end), none; !end && task != none; task.increment(end)) {
    cpu_set_t set;
    auto const id = static_cast<pid_t>(std::atoi(task->path().filename().c_str()));
    if (sched_getaffinity(id, sizeof set, &set) == 0) CPU_OR(&all, &all, &set);
  }
  if (CPU_COUNT(&all) > 0) sched_setaffinity(0, sizeof all, &all);
} catch (std::exception const&) { // it stays where it is
}

int thread_share(std::vector<ProcessorMask> const& masks, int me) {
  double share = 0;
  for (std::size_t p = 0; p < ProcessorMask().size(); ++p) {
    if (!masks[static_cast<std::size_t>(me)][p]) continue;
    auto const users = std::count_if(masks.begin(), masks.end(), [p](ProcessorMask const& mask) { return mask[p]; });
    share += 1.0 / static_cast<double>(users);
  }
  double const rounding = 1e-6; // three thirds make one
  return std::max(1, static_cast<int>(share + rounding));
}

} // namespace kozero
