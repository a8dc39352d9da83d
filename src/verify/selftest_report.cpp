#include "verify/selftest_report.hpp"

#include "core/error.hpp"

#include <algorithm>
#include <cmath>
#include <optional>

namespace kozero {

namespace {

using SumOrder = SelftestClass::SumOrder;

/// A norm that is not finite says that the update was skipped, and no more.
bool same_number(double a, double b) { return a == b || (!std::isfinite(a) && !std::isfinite(b)); }
bool same_bits(std::size_t, double a, double b) { return same_number(a, b); }

std::string unless_skipped(double norm, std::string const& number) { return std::isfinite(norm) ? number : "skipped"; }

bool skips_all(SelftestResult const& run) {
  return std::ranges::none_of(run.norms, [](double norm) { return std::isfinite(norm); });
}

/// "loss of batch 3: 5.25, not 5.5", of the first number in batches 0 … batches-1 (told from 1) for which
/// same(batch, number, wanted) is false; empty where there is none. The loss at the end comes after the last batch.
template <class Same>
std::string first_difference(SelftestResult const& run, SelftestResult const& reference, std::size_t batches,
                             Same const& same) {
  auto const norm = [](double value) { return unless_skipped(value, fmt::format("{}", value)); };
  for (std::size_t b = 0; b < batches; ++b) {
    if (!same(b, run.losses[b], reference.losses[b])) {
      return fmt::format("loss of batch {}: {}, not {}", b + 1, run.losses[b], reference.losses[b]);
    }
    if (!same(b, run.norms[b], reference.norms[b])) {
      return fmt::format("norm of batch {}: {}, not {}", b + 1, norm(run.norms[b]), norm(reference.norms[b]));
    }
  }
  bool const whole = batches == run.norms.size();
  if (!whole || same(batches, run.losses.back(), reference.losses.back())) return "";
  return fmt::format("loss at the end: {}, not {}", run.losses.back(), reference.losses.back());
}

std::string difference_of_bits(SelftestResult const& run, SelftestResult const& reference) {
  std::string found = first_difference(run, reference, run.norms.size(), same_bits);
  if (!found.empty() || run.hash == reference.hash) return found;
  return fmt::format("the state: {}, not {}", run.hash, reference.hash);
}

/// How far apart, relatively, losses and norms may be whose gradients were summed in another order. Each update makes
/// the distance larger, since Adam's first steps have the size of the learning rate however small a gradient is. So the
/// first two batches say most; after a few more nothing is asked.
double tolerance_at(std::size_t batch, ComputeType compute) {
  double const at_first = compute == ComputeType::fp32 ? 1e-5 : 2e-2;
  return batch < 2 ? at_first : at_first * std::pow(10.0, static_cast<double>(batch - 1));
}

/// How many batches two orders of summing have in common. In fp16 a sum of all micro-batches may overflow where the
/// addends do not; after that the runs are two.
std::size_t comparable_batches(SelftestResult const& a, SelftestResult const& b, ComputeType compute) {
  std::size_t common = 0;
  while (common < a.norms.size() &&
         (compute != ComputeType::fp16 || std::isfinite(a.norms[common]) == std::isfinite(b.norms[common]))) {
    ++common;
  }
  return common;
}

std::string difference_beyond_rounding(SelftestResult const& run, SelftestResult const& reference,
                                       ComputeType compute) {
  auto const close = [compute](std::size_t batch, double number, double wanted) {
    return same_number(number, wanted) || std::abs(number - wanted) <= tolerance_at(batch, compute) * std::abs(wanted);
  };
  if (!same_number(run.losses[0], reference.losses[0])) { // no gradient has had an effect yet
    return fmt::format("loss of batch 1: {}, not {}", run.losses[0], reference.losses[0]);
  }
  return first_difference(run, reference, comparable_batches(run, reference, compute), close);
}

/// Goes through the cases in order, and knows the first run of every class.
class Comparison {
public:
  Comparison(std::span<SelftestCase const> cases, std::span<SelftestOutcome const> outcomes)
      : cases_(cases), outcomes_(outcomes) {}

  std::vector<SelftestFinding> run() {
    std::vector<SelftestFinding> findings;
    for (std::size_t i = 0; i < cases_.size(); ++i) findings.push_back(look_at(i));
    return findings;
  }

private:
  using Kind = SelftestFinding::Kind;

  SelftestFinding look_at(std::size_t i) {
    switch (outcomes_[i].kind) {
    case SelftestOutcome::Kind::does_not_fit: return {Kind::does_not_fit, "does not fit: " + outcomes_[i].message};
    case SelftestOutcome::Kind::failed: return {Kind::failed, "FAILED: " + outcomes_[i].message};
    case SelftestOutcome::Kind::ran: break;
    }
    SelftestFinding finding = compare(i);
    if (finding.kind != Kind::differs && skips_all(result(i))) {
      finding = {Kind::skipped, finding.text + ", EVERY UPDATE SKIPPED"};
    }
    return finding;
  }

  SelftestFinding compare(std::size_t i) {
    auto const reference = first_of(cases_[i].kind);
    if (!reference) return look_at_first(i);
    std::string const difference = difference_of_bits(result(i), result(*reference));
    if (!difference.empty()) return differs(*reference, difference);
    return {Kind::agrees, fmt::format("= {}", name(*reference))};
  }

  /// The first run of its class, beside the first runs of those that are like it in one of the two things.
  SelftestFinding look_at_first(std::size_t i) {
    SelftestClass const kind = cases_[i].kind;
    SelftestFinding finding{Kind::nothing_before, fmt::format("group {}", firsts_.size() + 1)};
    firsts_.push_back(i);
    ComputeType const compute = cases_[i].config.precision.compute;
    bool const ranks_first = kind.order == SumOrder::ranks_first;
    SumOrder const other_order = ranks_first ? SumOrder::micro_batches_first : SumOrder::ranks_first;
    if (auto const other = first_of({other_order, kind.delayed})) {
      std::string const difference = difference_beyond_rounding(result(i), result(*other), compute);
      if (!difference.empty()) return differs(*other, difference);
      finding.kind = Kind::agrees;
      finding.text += fmt::format(", as {} to rounding", name(*other));
    }
    if (auto const other = first_of({kind.order, !kind.delayed}); other && kind.delayed) {
      // The gradient of batch `start` is the first to be pending, so only later batches can tell.
      auto const start = static_cast<std::size_t>(*cases_[i].config.offload.delayed_update.start);
      std::string const difference = first_difference(result(i), result(*other), start, same_bits);
      if (!difference.empty()) return differs(*other, difference);
      finding.kind = Kind::agrees;
      finding.text += fmt::format(", = {} up to batch {}", name(*other), start);
      if (result(i).hash == result(*other).hash) {
        finding.kind = Kind::undelayed;
        finding.text += ", AND TO THE END";
      }
    }
    return finding;
  }

  std::optional<std::size_t> first_of(SelftestClass const& kind) const {
    auto const found = std::ranges::find_if(firsts_, [&](std::size_t i) { return cases_[i].kind == kind; });
    return found == firsts_.end() ? std::nullopt : std::optional(*found);
  }
  SelftestResult const& result(std::size_t i) const { return outcomes_[i].result; }
  static std::string name(std::size_t i) { return fmt::format("row {}", i + 1); }
  static SelftestFinding differs(std::size_t reference, std::string const& difference) {
    return {Kind::differs, fmt::format("DIFFERS FROM {} in {}", name(reference), difference)};
  }

  std::span<SelftestCase const> cases_;
  std::span<SelftestOutcome const> outcomes_;
  std::vector<std::size_t> firsts_; // of the classes that have run
};

} // namespace

std::vector<SelftestFinding> compare_selftest(std::span<SelftestCase const> cases,
                                              std::span<SelftestOutcome const> outcomes) {
  return Comparison(cases, outcomes).run();
}

SelftestVerdict judge_selftest(std::span<SelftestFinding const> findings) {
  using Kind = SelftestFinding::Kind;
  auto const count = [&](Kind kind) { return std::ranges::count(findings, kind, &SelftestFinding::kind); };
  auto const bad = count(Kind::differs) + count(Kind::failed);
  auto const absent = count(Kind::does_not_fit);
  if (bad > 0) {
    return {false, fmt::format("selftest FAILED: {} of {} combinations differ or failed (a fault of kozero, of a "
                               "library or of this machine); trust no run here before the cause is found",
                               bad, findings.size())};
  }
  if (auto const skipped = count(Kind::skipped); skipped > 0) {
    auto const ran = std::ssize(findings) - absent;
    return {false, fmt::format("selftest FAILED: every update was skipped{} (no norm is finite), so nothing was "
                               "compared; lower precision.loss_scale.initial or optimizer.lr, or give more --updates",
                               skipped == ran ? "" : fmt::format(" in {} of {} combinations", skipped, ran))};
  }
  if (count(Kind::undelayed) > 0) {
    return {false,
            "selftest FAILED: with delayed updates the state is that without (fewer than 3 updates were applied, "
            "or the learning rate is too small; otherwise kozero is at fault), so nothing was compared; lower "
            "precision.loss_scale.initial, raise "
            "optimizer.lr, or give more --updates"};
  }
  if (count(Kind::agrees) == 0) {
    return {false, fmt::format("selftest FAILED: nothing was compared ({} of {} combinations do not fit in memory); "
                               "raise memory.device_limit and host_limit, or make the model or batch.micro smaller",
                               absent, findings.size())};
  }
  if (absent > 0) {
    return {true, fmt::format("selftest passed: {} of {} combinations are as they should be; {} do not fit in memory "
                              "and were not tested",
                              findings.size() - static_cast<std::size_t>(absent), findings.size(), absent)};
  }
  return {true, fmt::format("selftest passed: all {} combinations are as they should be", findings.size())};
}

std::string selftest_table(std::span<SelftestCase const> cases, std::span<SelftestOutcome const> outcomes,
                           std::span<SelftestFinding const> findings) {
  auto const line = [](auto const& row, auto const& columns, auto const&... results) {
    return fmt::format("{:>3}  {:<5}  {:<8}  {:<7}  {:<9}  {:>10}  {:>10}  {:<8}  {}\n", row, columns[0], columns[1],
                       columns[2], columns[3], results...);
  };
  std::string table = line("row", selftest_columns, "loss", "norm", "state", "result");
  for (std::size_t i = 0; i < cases.size(); ++i) {
    auto const& columns = cases[i].columns;
    SelftestResult const& result = outcomes[i].result;
    if (outcomes[i].kind == SelftestOutcome::Kind::ran) {
      table += line(i + 1, columns, fmt::format("{:.6g}", result.losses[result.norms.size() - 1]),
                    unless_skipped(result.norms.back(), fmt::format("{:.6g}", result.norms.back())),
                    result.hash.substr(0, 8), findings[i].text);
    } else {
      table += line(i + 1, columns, "-", "-", "-", findings[i].text);
    }
  }
  return table;
}

} // namespace kozero
