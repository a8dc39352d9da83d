// A whole model against PyTorch: logits, loss, every gradient, and ten AdamW updates.
#include "model/reference_file.hpp"
#include "support/catch.hpp"
#include "support/device_array.hpp"
#include "support/small_run.hpp"
#include "support/world.hpp"

#include "kernels/shapes.hpp"
#include "model/families.hpp"

#include <cmath>
#include <map>

using namespace kozero;
using namespace kozero::test;

namespace {

double norm_of_difference(std::vector<float> const& a, std::vector<float> const& b) {
  double sum = 0;
  for (std::size_t i = 0; i < b.size(); ++i) sum += (double(a[i]) - b[i]) * (double(a[i]) - b[i]);
  return std::sqrt(sum);
}

double norm_of(std::vector<float> const& a) { return norm_of_difference(a, std::vector<float>(a.size())); }

/// |a - b| / |b| in the L2 norm.
double relative_error(std::vector<float> const& a, std::vector<float> const& b) {
  return a.size() == b.size() ? norm_of_difference(a, b) / norm_of(b) : 1e300;
}

/// The file has the tensors as checkpoints of format 1 had them.
std::vector<float> read_tensor(ReferenceFile const& file, std::string const& group, std::string const& name,
                               std::size_t size) {
  auto const former = architecture_of(file.model())->former_tensor(name, 1).value_or(FormerTensor{name, {}});
  auto const all = file.read<float>(group + former.name);
  std::vector<float> values(size);
  for (std::size_t i = 0; i < size; ++i) {
    std::size_t from = i;
    if (former.order == FormerTensor::Order::transposed) {
      auto const out = static_cast<std::size_t>(former.shape[0]);
      from = i % out * (size / out) + i / out;
    }
    values[i] = all.at(static_cast<std::size_t>(former.begin) + from);
  }
  return values;
}

using Tensors = std::map<std::string, std::vector<float>>;

/// Today's tensors put together as the file has them: q, k and v in one, projections [out, in].
Tensors as_in_file(ReferenceFile const& file, Tensors const& tensors) {
  auto const architecture = architecture_of(file.model());
  Tensors former;
  for (auto const& [name, values] : tensors) {
    auto const place = architecture->former_tensor(name, 1).value_or(FormerTensor{name, {}});
    auto& whole = former[place.name];
    auto const end = static_cast<std::size_t>(place.begin) + values.size();
    whole.resize(std::max(whole.size(), end));
    for (std::size_t i = 0; i < values.size(); ++i) {
      std::size_t to = i;
      if (place.order == FormerTensor::Order::transposed) {
        auto const out = static_cast<std::size_t>(place.shape[0]);
        to = i % out * (values.size() / out) + i / out;
      }
      whole[static_cast<std::size_t>(place.begin) + to] = values[i];
    }
  }
  return former;
}

/// The key third of an attention bias has no effect on the model (softmax ignores a shift of all scores), so its exact
/// gradient is zero and Adam makes steps of its rounding noise. Everything else of the tensor is compared.
std::vector<float> without_key_bias(std::string const& name, std::vector<float> values) {
  if (!name.ends_with("attn.qkv.bias")) return values;
  auto const third = static_cast<std::ptrdiff_t>(values.size() / 3);
  values.erase(values.begin() + third, values.begin() + 2 * third);
  return values;
}

template <class T>
class Reference {
public:
  Reference(ReferenceFile const& file, std::int64_t stage)
      : file_(file), model_(file.model()), rates_(file.read<double>("/adamw/lr")),
        run_(options(stage), alone_, [this](std::int64_t update) { return rates_[update - 1]; }) {
    for (auto const& entry : run_.state()) {
      if (entry.kind == "master") {
        set_values(entry,
                   read_tensor(file, "/parameters/", entry.name, static_cast<std::size_t>(entry.interval.size())));
      }
    }
    run_.engine().publish_master(Lane());
  }

  SmallRun<T>& run() { return run_; }

  Tensors values(std::string const& kind) {
    Tensors tensors;
    for (auto const& entry : run_.state()) {
      if (entry.kind == kind) tensors[entry.name] = values_of(entry);
    }
    return tensors;
  }

  /// Gradients of batch 0 at the initial parameters, which fp16 has under a loss scale.
  Tensors gradients(double& loss) {
    Lane const lane;
    auto& engine = run_.engine();
    auto& model = run_.model();
    std::int64_t const valid = run_.feed().load_training(0);
    MicroBatch const batch = run_.feed().upload(lane, 0);
    engine.begin(lane, training_visits(model.units()), {});
    for (int u = 0; u < model.units(); ++u) model.forward(lane, u, engine.params(lane, {u, Phase::forward}), batch);
    for (int u = model.units() - 1; u >= 0; --u) {
      auto const params = engine.params(lane, {u, Phase::backward});
      model.backward(lane, u, params, engine.grads(lane, u), batch, loss_scale / static_cast<float>(valid));
    }
    loss = 0;
    for (float const row : to_host(model.head().losses())) loss += row;
    loss /= static_cast<double>(valid);
    Tensors tensors;
    for (int u = 0; u < model.units(); ++u) {
      auto const block = engine.grads(lane, u)[0];
      for (auto const& tensor : engine.layout()[u].tensors()) {
        auto& gradient = tensors[tensor.spec.name] = to_host(block.data() + tensor.offset, tensor.spec.size());
        for (float& value : gradient) value /= loss_scale;
      }
    }
    return tensors;
  }

  std::vector<float> logits() {
    Lane const lane;
    auto& engine = run_.engine();
    auto& model = run_.model();
    run_.feed().load_training(0);
    MicroBatch const batch = run_.feed().upload(lane, 0);
    std::int64_t const n = file_.attribute("batch") * model_.context;
    std::int64_t const padded = padded_vocabulary(model_.vocabulary);
    DeviceArray<float> const memory(n * padded);
    engine.begin_evaluation(evaluation_visits(model.units()));
    for (int u = 0; u < model.units(); ++u) {
      auto const params = engine.params(lane, {u, Phase::forward});
      model.forward(lane, u, params, batch);
      if (u + 1 == model.units()) model.head().logits(lane, params, make_mat(memory.data(), n, padded), 0);
    }
    auto const all = memory.get();
    std::vector<float> wanted;
    for (std::int64_t row = 0; row < n; ++row) {
      auto const first = all.begin() + row * padded;
      wanted.insert(wanted.end(), first, first + model_.vocabulary);
    }
    return wanted;
  }

private:
  SmallRunOptions options(std::int64_t stage) {
    std::int64_t const b = file_.attribute("batch");
    std::int64_t const t = model_.context;
    auto const copy = [t](std::vector<std::int32_t> const& from, std::int64_t row, std::span<std::int32_t> to) {
      std::copy_n(from.begin() + row * t, t, to.begin());
    };
    auto const tokens = file_.read<std::int32_t>("/tokens");
    auto const targets = file_.read<std::int32_t>("/targets");
    return {.model = model_,
            .stage = stage,
            .micro = b,
            .rows = [=](std::int64_t batch, std::int64_t row, std::span<std::int32_t> in, std::span<std::int32_t> out) {
              copy(tokens, batch * b + row, in);
              copy(targets, batch * b + row, out);
            }};
  }

  static constexpr float loss_scale = std::is_same_v<T, fp16> ? 1024.0f : 1.0f;
  ReferenceFile const& file_;
  ModelConfig model_;
  std::vector<double> rates_; // of the reference's updates
  Alone alone_;
  SmallRun<T> run_;
};

template <class T>
inline constexpr double tolerance = std::is_same_v<T, float>  ? 1e-5
                                    : std::is_same_v<T, bf16> ? 2e-2
                                                              : 2.5e-3;

} // namespace

TEMPLATE_TEST_CASE("logits, loss and gradients are PyTorch's", "", float, bf16, fp16) {
  for (char const* const name : {"gpt2_a.h5", "gpt2_b.h5"}) {
    ReferenceFile const file(name);
    Reference<TestType> reference(file, 0);
    INFO(name);
    CHECK(relative_error(reference.logits(), file.read<float>("/logits")) < tolerance<TestType>);
    double loss = 0;
    auto const gradients = reference.gradients(loss);
    CHECK(relative_difference(loss, file.read<float>("/loss")[0]) < tolerance<TestType>);
    for (auto const& [tensor, gradient] : as_in_file(file, gradients)) {
      INFO(tensor);
      CHECK(relative_error(gradient, file.read<float>("/gradients/" + tensor)) < tolerance<TestType>);
    }
  }
}

TEMPLATE_TEST_CASE("ten AdamW updates are PyTorch's", "", float, bf16) {
  for (char const* const name : {"gpt2_a.h5", "gpt2_b.h5"}) {
    for (std::int64_t const stage : {0, 3}) {
      ReferenceFile const file(name);
      Reference<TestType> reference(file, stage);
      auto const losses = file.read<float>("/adamw/losses");
      auto const norms = file.read<float>("/adamw/norms");
      INFO(name << ", stage " << stage);
      for (std::size_t i = 0; i < losses.size(); ++i) {
        INFO("update " << i + 1);
        BatchReport const report = reference.run().step();
        CHECK(relative_difference(report.loss, losses[i]) < tolerance<TestType>);
        CHECK(relative_difference(report.update.norm, norms[i]) < tolerance<TestType>);
      }
      struct Kind {
        char const* ours;
        char const* theirs;
      };
      for (Kind const kind : {Kind{"master", "parameters"}, Kind{"m", "m"}, Kind{"v", "v"}}) {
        for (auto const& [tensor, values] : as_in_file(file, reference.values(kind.ours))) {
          INFO(kind.ours << " of " << tensor);
          auto const theirs = file.read<float>(std::string("/adamw/") + kind.theirs + "/" + tensor);
          CHECK(relative_error(without_key_bias(tensor, values), without_key_bias(tensor, theirs)) <
                tolerance<TestType>);
        }
      }
    }
  }
}
