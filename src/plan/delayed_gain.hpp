#pragma once
#include "config/config.hpp"
#include "data/batch_shape.hpp"

#include <string>

namespace kozero {

/// Seconds of one batch on a rank, by who works.
struct BatchTimes {
  double device_s = 0; // forward and backward passes
  double host_s = 0;   // AdamW on the host's part of the optimizer
  double up_s = 0;     // its results to the device
};

/// What delayed updates make of a batch's time.
struct DelayedGain {
  double synchronous_s = 0;
  double delayed_s = 0;
  /// The part of the time that goes away; negative where it becomes longer.
  double part() const { return 1 - delayed_s / synchronous_s; }
};

enum class HostWork { overlaps, takes_turns };

/// Without delay the results go up while the host works, after the device has; delayed, device and host work at the
/// same time, and the results go up at the end. Where device and host are the same cores (takes_turns) nothing
/// overlaps.
DelayedGain predict_delayed_gain(BatchTimes const& times, HostWork work);

/// What a machine does in a second.
struct MachineRates {
  double flops = 0;           // floating-point operations of matrix products on the device
  double adam_parameters = 0; // parameters that AdamW updates on the host
  double link_bytes = 0;      // bytes from pinned memory to the device
};

/// From short measurements. Takes about a tenth of a second.
MachineRates measure_machine_rates(Config const& config, BatchShape const& batch);

/// What a batch of the deck takes at those rates.
BatchTimes batch_times(Config const& config, BatchShape const& batch, MachineRates const& rates);

/// "predicted a batch: device 1.2 s, host 0.35 s; 1.55 s without delay, 1.21 s with, 22 % less", with advice where
/// there is none to win.
std::string describe_delayed_gain(BatchTimes const& times, HostWork work);

} // namespace kozero
