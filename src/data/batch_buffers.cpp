#include "data/batch_buffers.hpp"

namespace kozero {

namespace {

template <class Buffer>
Buffer ids(Ledger& ledger, char const* label, std::int64_t count) {
  return {ledger, Category::workspace, label, count};
}

constexpr auto host_ids = ids<HostBuffer<std::int32_t>>;
constexpr auto device_ids = ids<DeviceBuffer<std::int32_t>>;

} // namespace

BatchBuffers::BatchBuffers(BatchShape const& shape, std::int64_t context, Ledger& ledger)
    : inputs(host_ids(ledger, "inputs", shape.accumulate * shape.micro * context)),
      targets(host_ids(ledger, "targets", shape.accumulate * shape.micro * context)),
      starts(host_ids(ledger, "group starts", shape.micro * context + 1)),
      positions(host_ids(ledger, "group positions", shape.micro * context)),
      device_inputs(device_ids(ledger, "inputs", shape.micro * context)),
      device_targets(device_ids(ledger, "targets", shape.micro * context)),
      device_starts(device_ids(ledger, "group starts", shape.micro * context + 1)),
      device_positions(device_ids(ledger, "group positions", shape.micro * context)) {}

} // namespace kozero
