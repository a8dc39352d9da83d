#pragma once
#include "config/config.hpp"

#include <cstdint>

namespace kozero {

/// Where a dynamic loss scale stands: what a checkpoint keeps of it.
struct LossScaleState {
  double scale = 1;              // a power of two
  std::int64_t clean_in_row = 0; // updates without an overflow since the last overflow or doubling
  std::int64_t overflows = 0;    // since the scale was last doubled
  friend bool operator==(LossScaleState const&, LossScaleState const&) = default;
};

/// The dynamic loss scale of fp16 (Micikevicius et al., 2018, section 3.2). The loss is multiplied by a power of two,
/// so that small gradients do not become 0 in fp16, and gradients are divided by it before they are used. The scale is
/// doubled as long as nothing overflows and halved when something does. Every rank keeps one and tells it the same.
///
///     LossScale scale(config.precision.loss_scale);
///     double const used = scale.value();            // of this backward pass, and of its gradients
///     …
///     auto const verdict = std::isfinite(norm) ? scale.clean() : scale.overflow();
///
///   clean      the `window`-th clean update in a row doubles the scale, forgives all overflows and begins a new
///              window. At the ceiling, 2^24, only the new window begins.
///   overflow   ends the row of clean updates. Overflows are counted since the scale was last doubled, in a row or not:
///              the `hysteresis`-th and all later ones halve it, earlier ones are tolerated. With 2, one bad batch does
///              not cost `window` updates at half the scale.
///   exhausted  an overflow that would halve the scale below 1 and so leaves it: gradients overflow by themselves.
///
/// The same sequence of scales as DeepSpeed's DynamicLossScaler (delayed_shift = hysteresis, consecutive_hysteresis =
/// False, min_scale = 1) and Megatron-LM's DynamicGradScaler (factors 2 and 1/2, min_scale 1) give up to the ceiling;
/// they have none, and Megatron-LM goes on at its smallest scale.
class LossScale {
public:
  enum class Verdict { kept, grown, tolerated, halved, exhausted };

  /// The configuration must be valid: `initial` a power of two from 1 to 2^24, the others 1 or more.
  explicit LossScale(LossScaleConfig const& config) : config_(config), state_{.scale = config.initial} {}

  double value() const { return state_.scale; }
  /// After an update whose gradients were finite: kept or grown.
  Verdict clean();
  /// After one that was skipped because they were not: tolerated, halved or exhausted.
  Verdict overflow();

  LossScaleState const& state() const { return state_; }
  /// Goes on from there, with this run's window and hysteresis. Error for a state that no loss scale can be in.
  void restore(LossScaleState const& state);

private:
  LossScaleConfig config_;
  LossScaleState state_;
};

} // namespace kozero
