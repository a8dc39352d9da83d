#include "data/batch_feed.hpp"

#include "core/activity.hpp"
#include "kernels/token_groups.hpp"
#include "support/catch.hpp"
#include "support/device_array.hpp"

#include <memory>
#include <vector>

using namespace kozero;
using namespace kozero::test;

namespace {

constexpr std::int64_t context = 5;
constexpr std::int64_t vocabulary = 11;

std::int32_t token(std::int64_t sample, std::int64_t t) {
  return static_cast<std::int32_t>((sample * 7 + t * t) % vocabulary);
}
/// Every third is ignored.
std::int32_t target(std::int64_t sample, std::int64_t t) { return (sample + t) % 3 == 0 ? -1 : token(sample, t + 1); }

class Samples final : public TokenSource {
public:
  void training_rows(std::int64_t first_sample, TokenRows const& rows) override {
    for (std::size_t i = 0; i < rows.inputs.size(); ++i) {
      auto const at = static_cast<std::int64_t>(i);
      rows.inputs[i] = token(first_sample + at / context, at % context);
      rows.targets[i] = target(first_sample + at / context, at % context);
    }
  }
  void evaluation_rows(std::int64_t first_sample, TokenRows const& rows) override {
    training_rows(first_sample + 1000, rows);
  }
  std::int64_t evaluation_windows() const override { return 100; }
};

/// What a micro-batch must have, and has.
struct Content {
  std::vector<std::int32_t> tokens, targets, starts, positions;
  friend bool operator==(Content const&, Content const&) = default;
};

Content of_samples(std::int64_t first, std::int64_t count) {
  Content content;
  for (std::int64_t i = 0; i < count * context; ++i) {
    content.tokens.push_back(token(first + i / context, i % context));
    content.targets.push_back(target(first + i / context, i % context));
  }
  content.starts.resize(static_cast<std::size_t>(vocabulary + 1));
  content.positions.resize(content.tokens.size());
  std::vector<std::int32_t> scratch(static_cast<std::size_t>(vocabulary));
  content.starts.resize(group_tokens(content.tokens, scratch, content.starts, content.positions) + 1);
  return content;
}

Content on_device_now(MicroBatch const& batch) {
  return {to_host(batch.tokens), to_host(batch.targets), to_host(batch.groups.starts), to_host(batch.groups.positions)};
}

void copy_tokens(Lane const& lane, Vec<std::int32_t> to, Vec<std::int32_t const> from) {
  launch(
      lane, "test", Range{rows(to)}, KOKKOS_LAMBDA(std::int64_t i) { to(i) = from(i); });
}

/// Rank 1 of two.
struct Feed {
  BatchShape const shape{3, 5, 2};
  Ledger ledger;
  BatchFeed feed{std::make_shared<Samples>(), shape, context, vocabulary, 1, ledger};
  Content of(std::int64_t batch, std::int64_t m) const {
    return of_samples(shape.first_sample(batch, m, 1), shape.micro);
  }
};

} // namespace

TEST_CASE_METHOD(Feed, "two micro-batches are on the device at once, each with its own tokens") {
  Lane const lane;
  for (std::int64_t const batch : {0, 1}) {
    feed.load_training(batch);
    MicroBatch before = feed.upload(lane, 0);
    CHECK(on_device_now(before) == of(batch, 0));
    for (std::int64_t m = 1; m < shape.accumulate; ++m) {
      MicroBatch const now = feed.upload(lane, m);
      CHECK(on_device_now(before) == of(batch, m - 1));
      CHECK(on_device_now(now) == of(batch, m));
      before = now;
    }
  }
}

TEST_CASE_METHOD(Feed, "what a lane was given to do with a micro-batch is done with its tokens, however late") {
  Lane const lane = separate_lane();
  std::vector<DeviceArray<std::int32_t>> seen;
  for (std::int64_t const batch : {0, 1}) {
    feed.load_training(batch);
    for (std::int64_t m = 0; m < shape.accumulate; ++m) {
      MicroBatch const micro = feed.upload(lane, m);
      copy_tokens(lane, seen.emplace_back(rows(micro.tokens)), micro.tokens);
    }
  }
  lane.fence("test");
  for (std::size_t i = 0; i < seen.size(); ++i) {
    auto const at = static_cast<std::int64_t>(i);
    CHECK(seen[i].get() == of(at / shape.accumulate, at % shape.accumulate).tokens);
  }
}

TEST_CASE_METHOD(Feed, "a micro-batch goes up in one copy from pinned memory, and takes no memory of its own") {
  feed.load_training(0);
  feed.upload(Lane(), 0);
  Activity const before = activity();
  for (std::int64_t m = 1; m < shape.accumulate; ++m) feed.upload(Lane(), m);
  CHECK(activity().link_copies - before.link_copies == shape.accumulate - 1);
  CHECK(activity().pageable_copies == before.pageable_copies);
  CHECK(activity().allocations == before.allocations);
  Lane().fence("test");
}

TEST_CASE_METHOD(Feed, "an evaluation's tokens take the place of a batch's, and valid targets are counted") {
  std::int64_t valid = 0;
  for (std::int64_t m = 0; m < shape.accumulate; ++m) {
    for (std::int32_t const t : of(0, m).targets) valid += t >= 0;
  }
  CHECK(feed.load_training(0) == valid);
  feed.load_evaluation(0);
  CHECK(on_device_now(feed.upload(Lane(), 2)) == of_samples(1000 + shape.first_sample(0, 2, 1), shape.micro));
}
