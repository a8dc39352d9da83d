// Delayed updates against a serial oracle of their table (doc/numerics.md), bit for bit: whole arrays on every rank,
// one step after the other, no engine.
#include "support/catch.hpp"
#include "support/device_array.hpp"
#include "support/faulty_collectives.hpp"
#include "support/long_shards.hpp"
#include "support/neighbour_tree.hpp"
#include "support/world.hpp"

#include "model/families.hpp"
#include "optim/adamw.hpp"
#include "train/state_entries.hpp"

#include <algorithm>
#include <cstring>
#include <limits>
#include <map>

using namespace kozero;
using namespace kozero::test;

namespace {

constexpr std::int64_t never = std::numeric_limits<std::int64_t>::max();

OffloadConfig delayed(double ratio, std::int64_t start) {
  return {.optimizer = OffloadTarget::host, .ratio = ratio, .delayed_update = {start}};
}

/// A model whose parameters, gradients and optimizer state are plain arrays of whole blocks.
template <class T>
class Oracle {
public:
  struct Gradient {
    std::vector<std::vector<float>> blocks; // summed over ranks
    double norm = 0;                        // without the loss scale
    double scale = 1;                       // the blocks are this times the gradient of the mean loss
  };

  Oracle(SmallRunOptions const& options, Group const& group)
      : options_(options), group_(group), layout_(architecture_of(options.model)->layout()),
        uses_(architecture_of(options.model)->uses()), shape_{options.micro, 1, group.size()},
        model_(options.model, options.micro, options.recompute, Purpose::train, ledger_),
        feed_(setup_of<T>(options, group.size()).tokens, shape_, options.model.context, options.model.vocabulary,
              group.rank(), ledger_) {
    // The first parameters are the engine's; their rule has its own tests.
    Engine<T> engine(Plan({}, group.rank(), group.size()), layout_, uses_, group, ledger_);
    engine.initialise(Lane(), 1337);
    for (auto const& block : layout_) {
      auto const size = static_cast<std::size_t>(block.size());
      master_.emplace_back(size);
      m_.emplace_back(size, 0.0f);
      v_.emplace_back(size, 0.0f);
      device_.emplace_back(block.size());
      sums_.emplace_back(block.size());
      for (auto const& tensor : block.tensors()) place_[tensor.spec.name] = {master_.size() - 1, tensor.offset};
    }
    for (auto const& entry : state_entries(layout_, engine.state())) {
      if (entry.kind == "master") std::ranges::copy(values_of(entry), at(master_, entry));
    }
    upload();
  }

  /// Of batch `batch`, with the parameters that the device has. `loss` is its mean. In fp16 the scale acts on the mean
  /// over the rows of a micro-batch, and the sum is divided by the targets when it is used.
  Gradient compute(std::int64_t batch, double scale, double& loss) {
    std::int64_t valid = feed_.load_training(batch);
    group_.ranks.sum(std::span(&valid, 1));
    for (auto const& sums : sums_) sums.set(std::vector<float>(static_cast<std::size_t>(sums.size())));
    double const count = std::is_same_v<T, fp16> ? static_cast<double>(options_.micro * options_.model.context)
                                                 : static_cast<double>(valid);
    auto const of_row = static_cast<float>(scale / count);
    MicroBatch const micro = feed_.upload(Lane(), 0);
    for (int u = 0; u < model_.units(); ++u)
      model_.forward(Lane(), u, views<T const>(device_, uses_[u].forward), micro);
    for (int u = model_.units() - 1; u >= 0; --u) {
      model_.backward(Lane(), u, views<T const>(device_, uses_[u].backward), views<float>(sums_, uses_[u].gradients),
                      micro, of_row);
    }
    loss = sum_of_windows() / static_cast<double>(valid);
    return reduce(scale / count * static_cast<double>(valid));
  }

  /// One update with the number `t`.
  void apply(Gradient const& gradient, std::int64_t t) {
    auto const& config = options_.optimizer;
    double const clip = config.clip ? std::min(1.0, *config.clip / (gradient.norm + 1e-6)) : 1.0;
    AdamWScalars const scalars(config, config.lr, t, clip / gradient.scale);
    for (std::size_t b = 0; b < layout_.size(); ++b) {
      for (std::int64_t i = 0; i < layout_[b].size(); ++i) {
        float const keep = i < layout_[b].decay_end() ? scalars.keep : 1.0f;
        adamw_element(master_[b][i], m_[b][i], v_[b][i], gradient.blocks[b][i], keep, scalars);
      }
    }
  }

  /// The device's parameters become those of the master.
  void upload() {
    for (std::size_t b = 0; b < layout_.size(); ++b) {
      device_[b].set(std::vector<T>(master_[b].begin(), master_[b].end()));
    }
  }

  void check_state(std::vector<StateEntry> const& entries) {
    for (auto const& entry : entries) {
      auto& arrays = entry.kind == "master" ? master_ : entry.kind == "m" ? m_ : v_;
      if (entry.interval.empty()) continue;
      INFO(entry.name << " " << entry.kind);
      auto const values = values_of(entry);
      CHECK(std::memcmp(at(arrays, entry), values.data(), values.size() * sizeof(float)) == 0);
    }
  }

private:
  template <class E, class Arrays>
  static std::vector<Vec<E>> views(Arrays const& arrays, std::vector<int> const& blocks) {
    std::vector<Vec<E>> result;
    for (int const b : blocks) result.push_back(arrays[b].view());
    return result;
  }

  float* at(std::vector<std::vector<float>>& arrays, StateEntry const& entry) {
    auto const [block, offset] = place_.at(entry.name);
    return arrays[block].data() + offset + entry.interval.begin;
  }

  /// Σ losses of the batch: each window's rows, then all ranks' windows in their order.
  double sum_of_windows() {
    auto const losses = to_host(model_.head().losses());
    std::vector<double> windows(static_cast<std::size_t>(shape_.global()), 0.0);
    for (std::int64_t i = 0; i < shape_.micro; ++i) {
      float const* const first = losses.data() + i * options_.model.context;
      windows[feed_.first_window(0) + i] = sum_of_neighbours({first, first + options_.model.context});
    }
    group_.ranks.sum(std::span(windows)); // each from one rank
    return sum_of_neighbours(windows);
  }

  // Gradients of T are rounded before ranks add them.
  Gradient reduce(double scale) {
    Gradient result;
    result.scale = scale;
    std::vector<double> squares; // of each block
    for (auto const& sums : sums_) {
      std::int64_t const n = sums.size();
      Partition const partition(n, group_.size());
      std::vector<float> values = sums.get();
      if (options_.gradients == GradientType::compute) {
        std::vector<T> rounded(values.begin(), values.end());
        group_.collectives
            .all_reduce(Lane(), {rounded.data(), n, dtype_of<T>, Space::host}, partition, Traffic::control)
            .wait(Lane());
        values.assign(rounded.begin(), rounded.end());
      } else {
        group_.collectives.all_reduce(Lane(), {values.data(), n, DType::f32, Space::host}, partition, Traffic::control)
            .wait(Lane());
      }
      squares.push_back(sum_of_squares({values.begin(), values.end()}));
      result.blocks.push_back(std::move(values));
    }
    result.norm = std::sqrt(sum_of_neighbours(squares)) / scale;
    return result;
  }

  SmallRunOptions options_;
  Group group_;
  Ledger ledger_;
  ModelLayout layout_;
  std::vector<UnitUses> uses_;
  BatchShape shape_;
  Model<T> model_;
  BatchFeed feed_;
  std::vector<std::vector<float>> master_, m_, v_; // by block
  std::vector<DeviceArray<T>> device_;
  std::vector<DeviceArray<float>> sums_;
  std::map<std::string, std::pair<std::size_t, std::int64_t>> place_; // of a tensor: block and offset
};

std::vector<StateEntry> without_gradients(std::vector<StateEntry> entries) {
  std::erase_if(entries, [](auto const& entry) { return entry.kind == "gradient"; });
  return entries;
}

/// The table, line by line: batch i, from 1, and what is done with its gradient. Batches in `bad` overflow. fp16 has
/// another loss scale in each batch.
template <class T>
void check_against_oracle(SmallRunOptions const& options, Group const& group, std::vector<std::int64_t> const& bad) {
  std::int64_t const start = *options.offload.delayed_update.start;
  std::int64_t const reductions = gpt2_of(options.model).layers + 2; // a batch
  auto const overflows = [&](std::int64_t i) { return std::find(bad.begin(), bad.end(), i) != bad.end(); };
  FaultyCollectives faulty(group, [&](std::int64_t reduction, auto const& gradients) {
    if (overflows(reduction / reductions + 1) && group.rank() == group.size() - 1) {
      float const value = gradients.count % 2 == 0 ? std::numeric_limits<float>::infinity() : std::nanf("");
      gradients.set(gradients.count / 2, value);
    }
  });
  SmallRun<T> run(options, faulty);
  Oracle<T> oracle(options, group);

  std::optional<typename Oracle<T>::Gradient> pending;
  std::int64_t applied = 0;
  for (std::int64_t i = 1; i <= options.updates; ++i) {
    std::int64_t const t = applied + (pending ? 1 : 0) + 1;
    double loss = 0;
    double const scale = std::is_same_v<T, fp16> ? std::ldexp(1.0, static_cast<int>(6 + i)) : 1.0;
    auto gradient = oracle.compute(i - 1, scale, loss);
    if (std::is_same_v<T, fp16>) run.training().set_loss_scale(scale);
    BatchReport const step = run.step();
    INFO("batch " << i << ", start " << start << ", stage " << options.stage);
    CHECK(step.loss == loss);
    CHECK(step.update.skipped == overflows(i));
    std::int64_t const before = applied;
    if (pending) { // of batch i-1 or, if that was dropped, none
      oracle.apply(*pending, ++applied);
      oracle.upload();
      pending.reset();
    }
    if (!overflows(i)) {
      CHECK(step.update.norm == gradient.norm);
      if (t < start) {
        oracle.apply(gradient, ++applied);
        oracle.upload();
      } else {
        pending = std::move(gradient);
      }
    }
    CHECK(step.update.applied == applied - before);
    CHECK(run.engine().pending().has_value() == pending.has_value());
    oracle.check_state(without_gradients(run.state()));
  }
  if (pending) oracle.apply(*pending, ++applied);
  CHECK(run.engine().drain(Lane()) == (pending ? 1 : 0));
  oracle.check_state(run.state());
}

SmallRunOptions some_updates(std::int64_t stage, double ratio, std::int64_t start) {
  return {.model = gpt2_model({.layers = 2, .heads = 2, .width = 32, .context = 8, .vocabulary = 300}),
          .stage = stage,
          .offload = delayed(ratio, start),
          .updates = 6};
}

} // namespace

TEST_CASE_METHOD(World, "delayed updates have the bits of a serial oracle") {
  for (std::int64_t stage = 1; stage <= 3; ++stage) {
    for (std::int64_t const start : {std::int64_t{1}, std::int64_t{3}, never}) {
      for (double const ratio : {0.1, 0.5, 1.0}) {
        check_against_oracle<float>(some_updates(stage, ratio, start), world, {});
      }
      SmallRunOptions options = some_updates(stage, 1, start);
      check_against_oracle<bf16>(options, world, {});
      options.gradients = GradientType::compute;
      check_against_oracle<bf16>(options, world, {});
      check_against_oracle<fp16>(options, world, {});
    }
  }
}

TEST_CASE_METHOD(World, "delayed updates of several tiles have the bits of the oracle") {
  for (double const ratio : {0.7, 1.0}) {
    SmallRunOptions options = some_updates(2, ratio, 2);
    options.model = long_shards(world.size());
    options.updates = 3;
    REQUIRE(longest_on_host(options, world) > host_tile);
    check_against_oracle<float>(options, world, {});
  }
}

TEST_CASE_METHOD(World, "a pending update and one that is not delayed are both applied in one batch, and counted") {
  // The gradient of update 2 is pending when a run that delays from 100 on takes over.
  SmallRun<float> delaying(some_updates(2, 1, 2), world);
  SmallRun<float> other(some_updates(2, 1, 100), world);
  for (std::int64_t batch = 0; batch < 2; ++batch) delaying.step();
  REQUIRE(delaying.engine().pending().has_value());
  other.engine().expect_pending(*delaying.engine().pending());
  auto const from = delaying.engine().state();
  auto const to = other.engine().state();
  REQUIRE(from.size() == to.size());
  for (std::size_t i = 0; i < from.size(); ++i) {
    copy_bytes(Lane(), {to[i].data, to[i].space}, {from[i].data, from[i].space},
               from[i].interval.size() * size_of(from[i].type));
  }
  other.engine().publish_master(Lane());
  other.training().set_counters({.batches_seen = 2, .updates_applied = 1});
  CHECK(other.step().update.applied == 2);
  CHECK(other.step().update.applied == 1);
  CHECK_FALSE(other.engine().pending().has_value());
}

TEST_CASE_METHOD(World, "with nothing on the host a delay is none") {
  SmallRunOptions options = some_updates(2, 0, 1);
  auto const delayed_run = small_run<float>(options, world);
  options.offload = {};
  CHECK(small_run<float>(options, world).hash == delayed_run.hash);
}

TEST_CASE_METHOD(World, "an overflow in a delayed run drops that gradient alone") { // CASES 6 and 8
  for (std::int64_t stage = 1; stage <= 3; ++stage) {
    for (auto const& bad : std::vector<std::vector<std::int64_t>>{{1}, {2, 3}, {4}, {3, 5, 6}}) {
      check_against_oracle<float>(some_updates(stage, 0.5, 3), world, bad);
      SmallRunOptions options = some_updates(stage, 1, 2);
      options.gradients = GradientType::compute;
      check_against_oracle<bf16>(options, world, bad);
      check_against_oracle<fp16>(options, world, bad);
    }
  }
}

TEST_CASE_METHOD(World, "delayed from never on is the synchronous run, and from 1 on is not") {
  for (std::int64_t stage = 1; stage <= 3; ++stage) {
    SmallRunOptions options = some_updates(stage, 1, never);
    options.accumulate = 3;
    auto const off = [&] {
      SmallRunOptions synchronous = options;
      synchronous.offload.delayed_update.start.reset();
      return small_run<bf16>(synchronous, world);
    }();
    auto const late = small_run<bf16>(options, world);
    CHECK(late.hash == off.hash);
    CHECK(late.losses == off.losses);
    options.offload.delayed_update.start = 1;
    auto const delayed_run = small_run<bf16>(options, world);
    CHECK(delayed_run.hash != off.hash);
    CHECK(delayed_run.losses[0] == off.losses[0]); // the first two batches see the first parameters
    CHECK(delayed_run.losses[1] != off.losses[1]);
  }
}

TEST_CASE_METHOD(
    World, "delayed updates have the same bits at every stage and ratio without accumulation, and in pairs with it") {
  for (std::int64_t const accumulate : {1, 4}) {
    std::map<std::int64_t, std::string> hashes;
    for (std::int64_t stage = 1; stage <= 3; ++stage) {
      for (double const ratio : {0.1, 0.5, 1.0}) {
        SmallRunOptions options = some_updates(stage, ratio, 2);
        options.accumulate = accumulate;
        auto const hash = small_run<bf16>(options, world).hash;
        auto const [first, is_new] = hashes.emplace(stage, hash);
        INFO("stage " << stage << ", ratio " << ratio << ", accumulate " << accumulate);
        CHECK(first->second == hash);
      }
    }
    CHECK(hashes[2] == hashes[3]);
    if (accumulate == 1) CHECK(hashes[1] == hashes[2]);
  }
}
