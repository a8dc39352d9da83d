#include "comm/rounds.hpp"

#include "comm/device_tree_sum.hpp"
#include "comm/tree_sum.hpp"
#include "core/launch.hpp"
#include "core/open_memory.hpp"

#include <algorithm>
#include <utility>

namespace kozero {

void Rounds::begin(Exchange const& exchange, RoundMemory const& memory, int tag, std::int64_t first_round) {
  exchange_ = exchange;
  memory_ = memory;
  tag_ = tag;
  length_ = memory.piece_bytes / size_of(exchange.whole.type);
  round_ = first_round;
  step_ = Step::begin;
}

std::int64_t Rounds::advance() {
  auto const next = [this] {
    switch (step_) {
    case Step::begin: return begin_round();
    case Step::lowering: return lower();
    case Step::summing: return sum();
    case Step::adding: return add_up();
    case Step::telling: return tell();
    case Step::end: return end();
    case Step::done: break;
    }
    return Outcome::must_wait;
  };
  while (next() == Outcome::on) {
  }
  return std::exchange(arrived_bytes_, 0);
}

Rounds::Outcome Rounds::begin_round() {
  bool left = false;
  for (int r = 0; r < ranks_.size; ++r) left = left || round_ * length_ < exchange_.part(r).size();
  if (!left) {
    step_ = Step::done;
    return Outcome::must_wait;
  }
  if (memory_.mirror) {
    for (int r = 0; r < ranks_.size; ++r) {
      if (!exchange_.sums() && r != ranks_.rank) continue;
      copy(copies_, on_pinned(piece(memory_.mirror, r)), on_device(in_array(r)), bytes_of(part(r).size()));
    }
    // Also where nothing is copied: it is past what the round before has sent up from the same memory.
    lowered_.record(copies_);
  }
  step_ = Step::lowering;
  return Outcome::on;
}

Rounds::Outcome Rounds::lower() {
  if (!lowered_.done()) return Outcome::must_wait;
  if (exchange_.sums()) {
    post_addends();
    step_ = Step::summing;
  } else {
    post_results();
    step_ = Step::telling;
  }
  return Outcome::must_wait;
}

Rounds::Outcome Rounds::sum() {
  if (!messages_complete()) return Outcome::must_wait;
  if (memory_.incoming_on_device) {
    unsigned char* const own = in_array(ranks_.rank);
    DeviceAddends const addends{.first = memory_.incoming,
                                .distance_bytes = memory_.piece_bytes,
                                .count = ranks_.size,
                                .own = ranks_.rank,
                                .own_place = own};
    DType const type = exchange_.whole.type;
    device_tree_sum(copies_, type, addends, type, own, part(ranks_.rank).size());
    added_.record(copies_);
    step_ = Step::adding;
    return Outcome::on;
  }
  addends_.clear();
  for (int r = 0; r < ranks_.size; ++r) {
    addends_.push_back(r == ranks_.rank ? reached(r) : piece(memory_.incoming, r));
  }
  tree_sum(exchange_.whole.type, addends_, part(ranks_.rank).size(), reached(ranks_.rank));
  step_ = Step::adding;
  return Outcome::on;
}

/// Nothing is to be waited for where the host has summed.
Rounds::Outcome Rounds::add_up() {
  if (!added_.done()) return Outcome::must_wait;
  if (!exchange_.tells()) {
    step_ = Step::end;
    return Outcome::on;
  }
  post_results();
  step_ = Step::telling;
  return Outcome::must_wait;
}

Rounds::Outcome Rounds::tell() {
  if (!messages_complete()) return Outcome::must_wait;
  step_ = Step::end;
  return Outcome::on;
}

Rounds::Outcome Rounds::end() {
  if (memory_.mirror) {
    for (int r = 0; r < ranks_.size; ++r) {
      bool const is_new = r == ranks_.rank ? exchange_.sums() : exchange_.tells();
      if (!is_new) continue;
      copy(copies_, on_device(in_array(r)), on_pinned(piece(memory_.mirror, r)), bytes_of(part(r).size()));
    }
  }
  round_ += 2;
  step_ = Step::begin;
  return Outcome::on;
}

void Rounds::post_addends() {
  std::int64_t const own = part(ranks_.rank).size();
  for_each_other([&](int from, int) { receive(from, piece(memory_.incoming, from), own); });
  for_each_other([&](int, int to) { send(to, reached(to), part(to).size()); });
}

void Rounds::post_results() {
  std::int64_t const own = part(ranks_.rank).size();
  for_each_other([&](int from, int) { receive(from, reached(from), part(from).size()); });
  for_each_other([&](int, int to) { send(to, reached(ranks_.rank), own); });
}

bool Rounds::messages_complete() {
  if (!receives_.empty() && all_complete(receives_)) arrived_bytes_ += std::exchange(coming_bytes_, 0);
  return receives_.empty() && (sends_.empty() || all_complete(sends_));
}

Interval Rounds::part(int rank) const {
  Interval const whole = exchange_.part(rank);
  return intersect({whole.begin + round_ * length_, whole.begin + (round_ + 1) * length_}, whole);
}

unsigned char* Rounds::in_array(int rank) const {
  return static_cast<unsigned char*>(exchange_.whole.data) + bytes_of(part(rank).begin);
}

unsigned char* Rounds::reached(int rank) const { return memory_.mirror ? piece(memory_.mirror, rank) : in_array(rank); }

void Rounds::receive(int from, unsigned char* to, std::int64_t elements) {
  if (elements == 0) return;
  coming_bytes_ += bytes_of(elements);
  require_open(to, bytes_of(elements), "MPI_Irecv", LibraryUse::writes);
  KOZERO_MPI(MPI_Irecv, to, static_cast<int>(elements), mpi_type(exchange_.whole.type), from, tag_, ranks_.handle,
             &receives_.emplace_back(MPI_REQUEST_NULL));
}

void Rounds::send(int to, unsigned char* from, std::int64_t elements) {
  if (elements == 0) return;
  require_open(from, bytes_of(elements), "MPI_Isend", LibraryUse::reads);
  KOZERO_MPI(MPI_Isend, from, static_cast<int>(elements), mpi_type(exchange_.whole.type), to, tag_, ranks_.handle,
             &sends_.emplace_back(MPI_REQUEST_NULL));
}

/// work(from, to): in each step every rank has another partner on either side.
template <class Work>
void Rounds::for_each_other(Work const& work) const {
  for (int step = 1; step < ranks_.size; ++step) {
    work((ranks_.rank - step + ranks_.size) % ranks_.size, (ranks_.rank + step) % ranks_.size);
  }
}

} // namespace kozero
