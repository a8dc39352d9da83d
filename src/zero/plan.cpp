#include "zero/plan.hpp"

#include "core/error.hpp"

#include <algorithm>
#include <bit>
#include <cmath>

namespace kozero {

Plan::Plan(Sharding const& sharding, int rank, int ranks, std::int64_t micro_batches)
    : gradients_as_computed_(sharding.gradients == GradientType::compute), sums_(sharding.sums),
      micro_batches_(micro_batches), rank_(rank), ranks_(ranks) {
  std::int64_t const stage = sharding.zero.stage;
  KOZERO_REQUIRE(0 <= stage && stage <= 3, "zero.stage is {} (there are 0, 1, 2 and 3); choose one", stage);
  optimizer_ = stage >= 1 ? Keep::shard : Keep::whole;
  gradients_ = stage >= 2 ? Keep::shard : Keep::whole;
  parameters_ = stage >= 3 ? Keep::shard : Keep::whole;
  KOZERO_REQUIRE(
      sums_ == SumOrder::ascending || (!gradients_as_computed_ && std::has_single_bit(static_cast<unsigned>(ranks))),
      "gradients can't be summed by one tree on {} ranks{} (run.reproducibility is topology); use 1, 2, 4, 8, … "
      "ranks and precision.gradients: fp32",
      ranks, gradients_as_computed_ ? " in the compute type" : "");
  if (sharding.offload.optimizer == OffloadTarget::none) return;
  KOZERO_REQUIRE(optimizer_ == Keep::shard,
                 "offload.optimizer is host and zero.stage is {} (its optimizer state is not "
                 "sharded); use stage 1, 2 or 3",
                 stage);
  host_ratio_ = sharding.offload.ratio;
  if (sharding.offload.delays()) delayed_from_ = sharding.offload.delayed_update.start;
}

std::int64_t Plan::reductions() const {
  if (gradients_ == Keep::shard) return micro_batches_;
  if (sums_ == SumOrder::ascending || ranks_ == 1) return 1;
  return micro_batches_ >> std::countr_zero(static_cast<std::uint64_t>(micro_batches_));
}

Interval Plan::updated(Partition const& partition) const {
  return optimizer_ == Keep::shard ? partition.shard(rank_) : Interval{0, partition.size()};
}

std::vector<Piece> Plan::pieces(ModelLayout const& layout) const {
  std::vector<Piece> pieces;
  std::int64_t all = 0;     // elements of the largest rank's parts so far
  std::int64_t on_host = 0; // and how many of them are the host's
  for (std::size_t b = 0; b < layout.size(); ++b) {
    Partition const whole = partition(layout[b].size());
    Interval const own = updated(whole);
    // Ranks cut alike, by the first one's part, which is the largest: so none holds more than that, on either side.
    std::int64_t const largest = optimizer_ == Keep::shard ? whole.shard(0).size() : whole.size();
    all += largest;
    // What one block has too much for its tiles the next one has less, so that the ratio holds over the whole model.
    double const wanted = host_ratio_ * static_cast<double>(all) - static_cast<double>(on_host);
    double const tiles = std::round((static_cast<double>(largest) - wanted) / static_cast<double>(tile));
    std::int64_t const nearest = std::clamp<std::int64_t>(static_cast<std::int64_t>(tiles) * tile, 0, largest);
    std::int64_t const at_device = host_ratio_ == 0 ? largest : host_ratio_ == 1 ? 0 : nearest;
    on_host += largest - at_device;
    std::int64_t const cut = own.begin + std::min(at_device, own.size());
    if (own.begin < cut || own.empty()) pieces.push_back({static_cast<int>(b), {own.begin, cut}, Space::device});
    if (cut < own.end) pieces.push_back({static_cast<int>(b), {cut, own.end}, Space::host});
  }
  return pieces;
}

} // namespace kozero
