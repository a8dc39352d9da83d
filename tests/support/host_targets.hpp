#pragma once
// Host loops as compiled for each instruction set that this processor has, for tests that compare their bits.

#include "core/host_simd.hpp"

#include <vector>

namespace kozero::test {

inline std::vector<HostTarget> host_targets() {
  std::vector<HostTarget> targets;
  for (HostTarget const target : {HostTarget::baseline, HostTarget::avx2, HostTarget::avx512}) {
    if (target <= widest_host_target()) targets.push_back(target);
  }
  return targets;
}

/// Host loops run as compiled for `target` while it lives.
class AsHostTarget {
public:
  explicit AsHostTarget(HostTarget target) { set_host_target(target); }
  ~AsHostTarget() { set_host_target(before_); }
  AsHostTarget(AsHostTarget const&) = delete;
  AsHostTarget& operator=(AsHostTarget const&) = delete;

private:
  HostTarget before_ = host_target();
};

} // namespace kozero::test
