#include "optim/loss_scale.hpp"

#include "core/error.hpp"

#include <cmath>

namespace kozero {

namespace {

constexpr double ceiling = 0x1p24;

bool is_power_of_two(double value) {
  int exponent = 0;
  return std::frexp(value, &exponent) == 0.5;
}

} // namespace

LossScale::Verdict LossScale::clean() {
  ++state_.clean_in_row;
  // A resumed run may have a smaller window than the row that it finds.
  if (state_.clean_in_row < config_.window) return Verdict::kept;
  state_.clean_in_row = 0;
  if (state_.scale >= ceiling) return Verdict::kept;
  state_.scale *= 2;
  state_.overflows = 0;
  return Verdict::grown;
}

LossScale::Verdict LossScale::overflow() {
  state_.clean_in_row = 0;
  ++state_.overflows;
  if (state_.overflows < config_.hysteresis) return Verdict::tolerated;
  if (state_.scale < 2) return Verdict::exhausted;
  state_.scale /= 2;
  return Verdict::halved;
}

void LossScale::restore(LossScaleState const& state) {
  bool const possible = is_power_of_two(state.scale) && state.scale >= 1 && state.scale <= ceiling &&
                        state.clean_in_row >= 0 && state.overflows >= 0;
  KOZERO_REQUIRE(possible,
                 "the loss scale cannot be {} after {} clean updates in a row and {} overflows (a scale is a power of "
                 "two from 1 to 2^24, counts are not negative); resume from another checkpoint",
                 state.scale, state.clean_in_row, state.overflows);
  state_ = state;
}

} // namespace kozero
