#include "infer/generate.hpp"

#include "config/compute_type.hpp"
#include "core/error.hpp"
#include "core/launch.hpp"
#include "core/rng.hpp"
#include "kernels/flat.hpp"
#include "kernels/gemm_workspace.hpp"
#include "kernels/shapes.hpp"
#include "model/families.hpp"
#include "model/model.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace kozero {

std::int32_t sample_token(std::vector<float> const& logits, GenerateOptions const& options, double uniform) {
  std::vector<std::int32_t> order(logits.size());
  std::iota(order.begin(), order.end(), 0);
  auto const likelier = [&](std::int32_t a, std::int32_t b) {
    return logits[a] != logits[b] ? logits[a] > logits[b] : a < b;
  };
  if (options.temperature == 0) return *std::min_element(order.begin(), order.end(), likelier);
  if (options.top_k > 0 && options.top_k < static_cast<std::int64_t>(order.size())) {
    std::partial_sort(order.begin(), order.begin() + options.top_k, order.end(), likelier);
    order.resize(static_cast<std::size_t>(options.top_k));
  }
  double const top = *std::max_element(logits.begin(), logits.end());
  std::vector<double> cumulative(order.size());
  double total = 0;
  for (std::size_t i = 0; i < order.size(); ++i) {
    total += std::exp((logits[order[i]] - top) / options.temperature);
    cumulative[i] = total;
  }
  auto const found = std::upper_bound(cumulative.begin(), cumulative.end(), uniform * total);
  auto const last = std::lower_bound(cumulative.begin(), cumulative.end(), total); // after it all have probability 0
  return order[static_cast<std::size_t>(std::min(found, last) - cumulative.begin())];
}

namespace {

/// A whole model in one process, for inference.
template <class T>
class Writer {
public:
  Writer(CheckpointReader const& checkpoint, Config const& config, Ledger& ledger)
      : context_(config.model.context), vocabulary_(config.model.vocabulary),
        workspace_(lane_, Fp32Products::exact, ledger),
        model_(config.model, 1, Recompute::none, Purpose::infer, ledger),
        tokens_(ledger, Category::workspace, "tokens", context_),
        logits_(ledger, Category::logits, "logits", padded_vocabulary(vocabulary_)) {
    auto const former = architecture_of(config.model)->former_tensors(checkpoint.info().format_version);
    for (auto const& block : model_.layout()) load(checkpoint, former, block, ledger);
  }

  /// logits [V] after the last of `text`, of which the model sees the last `context` tokens.
  std::vector<float> next_logits(std::vector<std::int32_t> const& text) {
    auto const seen = std::min<std::int64_t>(context_, static_cast<std::int64_t>(text.size()));
    std::vector<std::int32_t> window(static_cast<std::size_t>(context_)); // zeros past the text
    std::copy_n(text.end() - seen, seen, window.begin());
    copy(lane_, tokens_.pointer(), on_host(window.data()), context_);
    auto const tokens = make_vec<std::int32_t const>(tokens_.data(), context_);
    for (int u = 0; u < model_.units(); ++u) model_.forward(lane_, u, params(u), {tokens, {}, {}});
    auto const logits = make_mat(logits_.data(), 1, padded_vocabulary(vocabulary_));
    model_.head().logits(lane_, params(model_.units() - 1), logits, seen - 1);
    std::vector<float> result(static_cast<std::size_t>(vocabulary_));
    copy(lane_, on_host(result.data()), logits_.pointer(), vocabulary_);
    KOZERO_REQUIRE(std::ranges::all_of(result, [](float logit) { return std::isfinite(logit); }),
                   "the model's logits are not finite (its training has diverged); use an earlier checkpoint");
    return result;
  }

private:
  void load(CheckpointReader const& checkpoint, FormerTensors const& former, BlockLayout const& block, Ledger& ledger) {
    DeviceBuffer<float> master(ledger, Category::staging, block.name(), block.size());
    for (auto const& tensor : block.tensors()) {
      StateEntry const entry{tensor.spec.name,  "master",
                             tensor.spec.shape, {0, tensor.spec.size()},
                             DType::f32,        master.data() + tensor.offset,
                             Space::device};
      checkpoint.read(entry, former);
    }
    blocks_.emplace_back(ledger, Category::parameters, block.name(), block.size());
    convert(lane_, blocks_.back().data(), master.data(), block.size());
    lane_.fence("loading"); // the memory of the master goes
  }

  std::vector<Vec<T const>> params(int unit) const {
    std::vector<Vec<T const>> blocks;
    for (int const b : model_.uses()[unit].forward)
      blocks.push_back(make_vec<T const>(blocks_[b].data(), blocks_[b].size()));
    return blocks;
  }

  std::int64_t context_;
  std::int64_t vocabulary_;
  LazyLane lane_;
  GemmWorkspace workspace_;
  Model<T> model_;
  DeviceBuffer<std::int32_t> tokens_; // [T], zeros past the text
  DeviceBuffer<float> logits_;        // [1,Vp]
  std::vector<DeviceBuffer<T>> blocks_;
};

template <class T>
void write_text(CheckpointReader const& checkpoint, Config const& config, std::vector<std::int32_t> text,
                GenerateOptions const& options, std::function<void(std::int32_t)> const& write, Ledger& ledger) {
  Writer<T> writer(checkpoint, config, ledger);
  for (std::int64_t i = 0; i < options.tokens; ++i) {
    RngKey const key{static_cast<std::uint64_t>(options.seed), RngPurpose::generate, 0, 0};
    std::int32_t const token =
        sample_token(writer.next_logits(text), options, random_uniform(key, static_cast<std::uint64_t>(i)));
    text.push_back(token);
    write(token);
  }
}

} // namespace

void generate(CheckpointReader const& checkpoint, Config const& config, std::vector<std::int32_t> prompt,
              GenerateOptions const& options, std::function<void(std::int32_t)> const& write, Ledger& ledger) {
  if (prompt.empty()) throw InputError("the prompt is empty (the model needs a token to go on from); give one");
  if (!(options.temperature >= 0)) { // a NaN too
    throw InputError(fmt::format("the temperature is {} (0 is greedy, 1 the model's own); give one of at least 0",
                                 options.temperature));
  }
  for (std::int32_t const token : prompt) {
    if (token < 0 || token >= config.model.vocabulary) {
      throw InputError(fmt::format("token {} of the prompt is not in the vocabulary of {} (0 to {}); use others", token,
                                   config.model.vocabulary, config.model.vocabulary - 1));
    }
  }
  with_compute_type(config.precision.compute,
                    [&]<class T>(T) { write_text<T>(checkpoint, config, std::move(prompt), options, write, ledger); });
}

} // namespace kozero
