#pragma once
#include "comm/communicator.hpp"
#include "support/device_array.hpp"

#include <functional>

namespace kozero::test {

/// Forwards to another communicator, and lets a test spoil this rank's gradients on their way into a reduction.
class FaultyComm final : public Communicator {
public:
  /// `spoil` gets the number of the reduction, from 0, and the gradients that this rank adds to it.
  using Spoil = std::function<void(std::int64_t reduction, Span gradients)>;
  static void set(Span const& gradients, std::int64_t element, float value) {
    with_float_type(gradients.type, [&]<class G>(G) {
      write_values({static_cast<G*>(gradients.data) + element, gradients.space}, std::vector{static_cast<G>(value)});
    });
  }
  FaultyComm(Communicator& inner, Spoil spoil) : inner_(inner), spoil_(std::move(spoil)) {}

  int rank() const override { return inner_.rank(); }
  int size() const override { return inner_.size(); }
  std::string description() const override { return inner_.description(); }
  using Communicator::broadcast;
  Pending all_gather(Lane const& lane, Span whole, Partition const& partition, Traffic purpose) override {
    return inner_.all_gather(lane, whole, partition, purpose);
  }
  Pending reduce_scatter(Lane const& lane, Span whole, Partition const& partition, Traffic purpose) override {
    spoil(lane, whole, purpose);
    return inner_.reduce_scatter(lane, whole, partition, purpose);
  }
  Pending all_reduce(Lane const& lane, Span whole, Partition const& partition, Traffic purpose) override {
    spoil(lane, whole, purpose);
    return inner_.all_reduce(lane, whole, partition, purpose);
  }
  Pending broadcast(Lane const& lane, Span data, int root, Traffic purpose) override {
    return inner_.broadcast(lane, data, root, purpose);
  }
  void barrier() override { inner_.barrier(); }
  void exchange(std::span<Outgoing const> sends, std::span<Incoming const> receives) override {
    inner_.exchange(sends, receives);
  }

private:
  void spoil(Lane const& lane, Span whole, Traffic purpose) {
    if (purpose != Traffic::gradients) return;
    lane.fence("test"); // the gradients are there
    spoil_(reduction_++, whole);
  }
  Communicator& inner_;
  Spoil spoil_;
  std::int64_t reduction_ = 0;
};

} // namespace kozero::test
