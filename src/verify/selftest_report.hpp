#pragma once
#include "config/config.hpp"
#include "verify/selftest_cases.hpp"

#include <span>
#include <string>
#include <vector>

namespace kozero {

/// What a run has left; the same on all ranks.
struct SelftestResult {
  std::vector<double> losses; // of each batch, and of one more with the parameters at the end
  std::vector<double> norms;  // of each batch; not finite: its update was skipped
  std::string hash;           // of the state at the end
};

/// What has become of a case.
struct SelftestOutcome {
  enum class Kind { ran, does_not_fit, failed };
  Kind kind = Kind::ran;
  SelftestResult result; // of one that ran
  std::string message;   // of one that did not
};

/// What a case has been found to be beside those before it.
struct SelftestFinding {
  /// skipped: none of the run's updates was applied. undelayed: the delay has not changed what is left. Neither says
  /// anything of kozero.
  enum class Kind { nothing_before, agrees, differs, skipped, undelayed, does_not_fit, failed };
  Kind kind = Kind::nothing_before;
  std::string text; // "group 1", "= row 1", "DIFFERS FROM row 1 in norm of batch 3: 1.5, not 1.25"
};

/// Compares each run with the first of its class: every loss, every norm and the state are the same bits. The first
/// runs of the classes are compared with each other:
/// - gradients summed in another order: the first loss is the same bits; the other losses and norms of the first two
///   batches agree to 1e-5 in fp32 and 2e-2 in 16 bits, relative, and of each further batch to ten times more. In fp16
///   they need not from a batch on that overflows in one of the orders alone;
/// - delayed: the batches before the first one that a delay can touch are the same bits; the state at the end is not.
/// `outcomes` are those of `cases`, in order.
std::vector<SelftestFinding> compare_selftest(std::span<SelftestCase const> cases,
                                              std::span<SelftestOutcome const> outcomes);

struct SelftestVerdict {
  bool passed = false;
  std::string text; // one line
};

/// Not passed when anything differs or has failed, or when a comparison that was to be made shows nothing.
SelftestVerdict judge_selftest(std::span<SelftestFinding const> findings);

/// A row a case, in lines that end with a line feed.
std::string selftest_table(std::span<SelftestCase const> cases, std::span<SelftestOutcome const> outcomes,
                           std::span<SelftestFinding const> findings);

} // namespace kozero
