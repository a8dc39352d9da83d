#include "comm/nccl_exchange.hpp"

#include "comm/device_tree_sum.hpp"

namespace kozero {

std::vector<int> exchange_peers(int rank, int ranks, std::optional<int> ranks_of_host) {
  int const near = ranks_of_host.value_or(ranks);
  std::vector<int> peers{rank};
  for (int other = 0; other < ranks; ++other) {
    if (other != rank && (other / near == rank / near || other % near == rank % near)) peers.push_back(other);
  }
  return peers;
}

NcclRound::NcclRound(Span const& whole, Partition const& partition, int rank, std::optional<int> ranks_of_host)
    : whole_(whole), partition_(partition), near_(ranks_of_host.value_or(partition.ranks())),
      hosts_(partition.ranks() / near_), own_near_(rank % near_), own_host_(rank / near_) {}

std::int64_t NcclRound::elements_in(std::int64_t bytes) const {
  std::int64_t const of_element =
      partition_.ranks() * size() + (in_two_levels() ? std::int64_t{2} * hosts_ * sum_size() : 0);
  return bytes / of_element / Partition::alignment * Partition::alignment;
}

void NcclRound::take(std::int64_t begin, std::int64_t elements, unsigned char* memory) {
  begin_ = begin;
  length_ = elements;
  incoming_ = memory;
  sums_ = memory + partition_.ranks() * elements * size(); // a multiple of 8 elements
}

Interval NcclRound::run(int rank) const {
  Interval const part = partition_.shard(rank);
  return intersect({part.begin + begin_, part.begin + begin_ + length_}, part);
}

unsigned char* NcclRound::in_array(int rank) const {
  return static_cast<unsigned char*>(whole_.data) + run(rank).begin * size();
}

unsigned char* NcclRound::incoming(int near, int host) const {
  return incoming_ + (static_cast<std::int64_t>(near) * hosts_ + host) * length_ * size();
}

// In each step every rank has another partner on either side.
void NcclRound::exchange_within_hosts(NcclGroup const& group) const {
  for (int step = 1; step < near_; ++step) {
    int const to = (own_near_ + step) % near_;
    int const from = (own_near_ - step + near_) % near_;
    for (int host = 0; host < hosts_; ++host) {
      group.receive(incoming(from, host), run_size(rank_at(host, own_near_)), whole_.type, rank_at(own_host_, from));
      group.send(in_array(rank_at(host, to)), run_size(rank_at(host, to)), whole_.type, rank_at(own_host_, to));
    }
  }
}

void NcclRound::sum_within_hosts(Lane const& lane) const {
  auto const addends_of = [this](int host) {
    return DeviceAddends{.first = incoming(0, host),
                         .distance_bytes = hosts_ * length_ * size(),
                         .count = near_,
                         .own = own_near_,
                         .own_place = in_array(rank_at(host, own_near_))};
  };
  if (!in_two_levels()) {
    return device_tree_sum(lane, whole_.type, addends_of(0), whole_.type, in_array(own_near_), run_size(own_near_));
  }
  int whole_runs = 0; // all hosts' but those of the last ranks, whose parts may be short
  while (whole_runs < hosts_ && run_size(rank_at(whole_runs, own_near_)) == length_) ++whole_runs;
  SumSeries const series{.count = whole_runs,
                         .addends_bytes = length_ * size(),
                         .own_bytes = near_ * partition_.shard_capacity() * size(),
                         .out_bytes = length_ * sum_size()};
  device_tree_sum(lane, whole_.type, addends_of(0), sum_type(), sum_of_host(0), length_, series);
  for (int host = whole_runs; host < hosts_; ++host) {
    device_tree_sum(lane, whole_.type, addends_of(host), sum_type(), sum_of_host(host),
                    run_size(rank_at(host, own_near_)));
  }
}

void NcclRound::exchange_between_hosts(NcclGroup const& group) const {
  std::int64_t const own = run_size(rank_at(own_host_, own_near_));
  for (int step = 1; step < hosts_; ++step) {
    int const to = (own_host_ + step) % hosts_;
    int const from = (own_host_ - step + hosts_) % hosts_;
    group.receive(sum_from(from), own, sum_type(), rank_at(from, own_near_));
    group.send(sum_of_host(to), run_size(rank_at(to, own_near_)), sum_type(), rank_at(to, own_near_));
  }
}

void NcclRound::sum_between_hosts(Lane const& lane) const {
  int const own = rank_at(own_host_, own_near_);
  DeviceAddends const addends{.first = sum_from(0),
                              .distance_bytes = length_ * sum_size(),
                              .count = hosts_,
                              .own = own_host_,
                              .own_place = sum_of_host(own_host_)};
  device_tree_sum(lane, sum_type(), addends, whole_.type, in_array(own), run_size(own));
}

} // namespace kozero
