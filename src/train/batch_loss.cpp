#include "train/batch_loss.hpp"

#include "core/launch.hpp"
#include "kernels/window_sums.hpp"

namespace kozero {

BatchLoss::BatchLoss(BatchShape const& shape, Ledger& ledger)
    : shape_(shape), windows_(ledger, Category::workspace, "window losses", shape.accumulate * shape.micro),
      collected_(ledger, Category::workspace, "window losses", shape.accumulate * shape.micro),
      first_windows_(static_cast<std::size_t>(shape.accumulate)), sum_(shape.global()) {}

void BatchLoss::begin() { sum_.clear(); }

void BatchLoss::add(Lane const& lane, std::int64_t m, std::int64_t first_window, Vec<float const> losses) {
  first_windows_[static_cast<std::size_t>(m)] = first_window;
  window_sums(lane, make_vec(windows_.data() + m * shape_.micro, shape_.micro), losses);
}

void BatchLoss::collect(Lane const& lane) {
  copy(lane, collected_.pointer(), windows_.pointer(), windows_.size());
  came_.record(lane);
}

double BatchLoss::total(Ranks& ranks) {
  came_.wait("loss");
  double const* window = collected_.data();
  for (std::int64_t const first : first_windows_) {
    for (std::int64_t i = 0; i < shape_.micro; ++i) sum_.add({0, first + i}, {*window++});
  }
  joiner_.join(ranks, {&sum_, 1});
  return sum_.total()[0];
}

} // namespace kozero
