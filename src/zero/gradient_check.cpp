#include "zero/gradient_check.hpp"

#include "core/launch.hpp"
#include "kernels/flat.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

namespace kozero {

namespace {

constexpr std::int64_t none = std::numeric_limits<std::int64_t>::max();

} // namespace

GradientCheck::GradientCheck(Plan const& plan, ModelLayout const& layout, Ranks& ranks, Ledger& ledger)
    : layout_(layout), ranks_(ranks) {
  static_assert(Partition::alignment % square_columns == 0);
  std::int64_t on_device = 0;
  std::int64_t on_host = 0;
  auto const pieces = plan.pieces(layout);
  for (std::size_t p = 0; p < pieces.size(); ++p) {
    auto const& [block, interval, space] = pieces[p];
    std::int64_t const size = layout[static_cast<std::size_t>(block)].size();
    Interval const wanted = intersect(plan.counted(plan.partition(size)), interval);
    if (wanted.empty()) continue;
    std::int64_t& sums = space == Space::host ? on_host : on_device;
    parts_.push_back({static_cast<int>(p), block, space, wanted, wanted.begin - interval.begin, sums});
    // Memory for the most, so that no rank takes more than the first, whose shards are the longest.
    sums += space == Space::host ? SquareNodes<HostLane>::most(wanted.size()) : SquareNodes<Lane>::most(wanted.size());
  }
  device_sums_ = {ledger, Category::workspace, "squares", on_device, DeviceBuffer<double>::Init::none};
  collected_ = {ledger, Category::workspace, "squares", on_device, PinnedBuffer<double>::Init::none};
  host_sums_ = {ledger, Category::workspace, "squares", on_host, HostBuffer<double>::Init::none};
  first_bad_ = {ledger, Category::workspace, "first bad element", 1};
  for (auto const& block : layout) blocks_.push_back(square_sum(block.size()));
}

/// work(x) with the gradient of the part's first element.
template <class Work>
void GradientCheck::with_gradient(GradStore const& grads, Part const& part, Work const& work) {
  with_float_type(grads.type(),
                  [&]<class G>(G) { work(static_cast<G const*>(grads.reduced(part.number)) + part.offset); });
}

double GradientCheck::norm(Lane const& lane, GradStore& grads) {
  grads.wait(lane);
  for (Part const& part : parts_) {
    if (part.space == Space::host) continue;
    SquareNodes<Lane> const nodes(part.wanted.begin, part.wanted.size(), layout_[part.block].size());
    with_gradient(grads, part, [&](auto const* x) { nodes.compute(lane, device_sums_.data() + part.sums, x); });
  }
  copy(lane, collected_.pointer(), device_sums_.pointer(), device_sums_.size());
  for (Part const& part : parts_) { // meanwhile
    if (part.space != Space::host) continue;
    SquareNodes<HostLane> const nodes(part.wanted.begin, part.wanted.size(), layout_[part.block].size());
    with_gradient(grads, part, [&](auto const* x) { nodes.compute(HostLane(), host_sums_.data() + part.sums, x); });
  }
  lane.fence("norm");

  for (auto& block : blocks_) block.clear();
  for (Part const& part : parts_) {
    std::int64_t const size = layout_[part.block].size();
    if (part.space == Space::host) {
      SquareNodes<HostLane> const nodes(part.wanted.begin, part.wanted.size(), size);
      nodes.add_to(blocks_[part.block], host_sums_.data() + part.sums);
    } else {
      SquareNodes<Lane> const nodes(part.wanted.begin, part.wanted.size(), size);
      nodes.add_to(blocks_[part.block], collected_.data() + part.sums);
    }
  }
  joiner_.join(ranks_, blocks_);
  squares_.clear();
  for (auto const& block : blocks_) squares_.push_back(sum_of_columns(block.total()));
  return std::sqrt(neighbour_sum(squares_));
}

/// Among the parts' elements, the blocks laid end to end.
std::int64_t GradientCheck::first_non_finite(Lane const& lane, GradStore const& grads) {
  std::int64_t found_on_host = none;
  fill(lane, first_bad_.pointer(), none, 1);
  std::vector<std::int64_t> starts;
  std::int64_t size = 0;
  for (auto const& block : layout_) {
    starts.push_back(size);
    size += block.size();
  }
  for (Part const& part : parts_) {
    std::int64_t const number = starts[part.block] + part.wanted.begin;
    with_gradient(grads, part, [&](auto const* x) {
      if (part.space == Space::host) {
        find_non_finite(HostLane(), &found_on_host, x, part.wanted.size(), number);
      } else {
        find_non_finite(lane, first_bad_.data(), x, part.wanted.size(), number);
      }
    });
  }
  std::int64_t found_on_device = none;
  copy(lane, on_host(&found_on_device), first_bad_.pointer(), 1);
  return std::min(found_on_host, found_on_device);
}

std::string GradientCheck::first_bad_tensor(Lane const& lane, GradStore const& grads) {
  auto const all = ranks_.gather(first_non_finite(lane, grads));
  std::int64_t first = *std::min_element(all.begin(), all.end());
  KOZERO_ASSERT(first != none); // squares of finite fp32 do not overflow in double
  for (auto const& block : layout_) {
    if (first < block.size()) return block.tensor_at(first).spec.name;
    first -= block.size();
  }
  return "";
}

} // namespace kozero
