#pragma once
#include "bench/rounds.hpp"
#include "core/dtype.hpp"
#include "core/ledger.hpp"
#include "kernels/gemm_workspace.hpp"

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

namespace kozero {

/// What matrix products cannot pass.
struct Peak {
  double flops = 0; // a second
  std::string source;
};

/// Of an accelerator by its name, for dense operands of a type and sums in fp32. Nothing where the list has none.
std::optional<Peak> known_peak(std::string_view device, DType type, Fp32Products fp32);

/// Fused multiply-adds of fp32 in the registers of all of the host's threads, with the widest vectors that host loops
/// use (core/host_simd.hpp); where the target has none, multiplications and additions. What products of fp32 on the
/// host cannot pass; with operands of 16 bits some processors can.
class FmaLoop {
public:
  explicit FmaLoop(Ledger& ledger);
  /// About a millisecond.
  void run() const;
  /// Of a run.
  double operations() const;

private:
  std::int64_t threads_;
  HostBuffer<float> results_; // so that none is left out
};

/// The limit that products of one type are measured against: an accelerator's is looked up, and a host's measured
/// beside them.
class ProductLimit {
public:
  ProductLimit(DType type, Fp32Products fp32, Ledger& ledger);

  /// What measure_rounds() takes as limit; empty where there is nothing to measure.
  std::function<void()> piece() const;
  /// Operations a second; nothing where the device is not in the list.
  std::optional<double> flops(RoundFigures const& figures) const;
  /// Of that, by work of so many operations.
  std::optional<double> share(RoundFigures const& figures, double operations) const;
  /// What it is, for people.
  std::string describe() const;

private:
  std::optional<FmaLoop> loop_;
  std::optional<Peak> peak_;
};

} // namespace kozero
