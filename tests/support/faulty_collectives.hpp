#pragma once
#include "comm/group.hpp"
#include "support/device_array.hpp"

#include <functional>

namespace kozero::test {

/// Those of another group, which let a test spoil this rank's gradients on their way into a reduction.
class FaultyCollectives final : public Collectives {
public:
  /// On their way, in the order of a lane.
  struct Gradients : Span {
    Lane const& lane;
    float get(std::int64_t element) const {
      lane.fence("test"); // they are there
      float value = 0;
      with_float_type(type, [&]<class G>(G) {
        value = static_cast<float>(read_values<G>({static_cast<G*>(data) + element, space}, 1)[0]);
      });
      return value;
    }
    void set(std::int64_t element, float value) const {
      lane.fence("test");
      with_float_type(type, [&]<class G>(G) {
        write_values({static_cast<G*>(data) + element, space}, std::vector{static_cast<G>(value)});
      });
    }
  };
  /// `spoil` gets the number of the reduction, from 0, and the gradients that this rank adds to it.
  using Spoil = std::function<void(std::int64_t reduction, Gradients const& gradients)>;
  FaultyCollectives(Group const& inner, Spoil spoil) : inner_(inner), spoil_(std::move(spoil)) {}

  /// The same ranks with these collectives.
  operator Group() { return {inner_.ranks, *this}; }

  Pending all_gather(Lane const& lane, Span whole, Partition const& partition, Traffic purpose) override {
    return inner_.collectives.all_gather(lane, whole, partition, purpose);
  }
  Pending reduce_scatter(Lane const& lane, Span whole, Partition const& partition, Traffic purpose) override {
    spoil(lane, whole, purpose);
    return inner_.collectives.reduce_scatter(lane, whole, partition, purpose);
  }
  Pending all_reduce(Lane const& lane, Span whole, Partition const& partition, Traffic purpose) override {
    spoil(lane, whole, purpose);
    return inner_.collectives.all_reduce(lane, whole, partition, purpose);
  }
  Pending broadcast(Lane const& lane, Span data, int root, Traffic purpose) override {
    return inner_.collectives.broadcast(lane, data, root, purpose);
  }
  void progress() override { inner_.collectives.progress(); }

private:
  void spoil(Lane const& lane, Span const& whole, Traffic purpose) {
    if (purpose == Traffic::gradients) spoil_(reduction_++, {whole, lane});
  }
  Group inner_;
  Spoil spoil_;
  std::int64_t reduction_ = 0;
};

} // namespace kozero::test
