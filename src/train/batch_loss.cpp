#include "train/batch_loss.hpp"

#include "comm/joined_sum.hpp"
#include "kernels/window_sums.hpp"

namespace kozero {

BatchLoss::BatchLoss(BatchShape const& shape, Ledger& ledger)
    : shape_(shape), windows_(ledger, Category::workspace, "window losses", shape.micro), sum_(shape.global()) {}

void BatchLoss::add(Lane const& lane, std::int64_t first_window, Vec<float const> losses) {
  window_sums(lane, make_vec(windows_.data(), shape_.micro), losses);
  lane.fence();
  auto const host = Kokkos::create_mirror_view_and_copy(HostMemory(), windows_.view());
  for (std::int64_t i = 0; i < shape_.micro; ++i) sum_.add({0, first_window + i}, {host(static_cast<std::size_t>(i))});
}

double BatchLoss::total(Ranks& ranks) const { return joined_total(ranks, sum_)[0]; }

} // namespace kozero
