// GPT-2 as a family: sizes, first values, where tensors stood before, and what it says of itself.
#include "support/catch.hpp"
#include "support/device_array.hpp"
#include "support/gpt2_model.hpp"
#include "support/small_run.hpp"
#include "support/world.hpp"

#include "config/model_family.hpp"
#include "model/families.hpp"

#include <map>

using namespace kozero;
using namespace kozero::test;

namespace {

using Values = std::vector<float>;

/// The first values of a model's tensors.
std::map<std::string, Values> first_values(ModelConfig const& model) {
  Alone alone;
  SmallRun<float> run({.model = model}, alone);
  std::map<std::string, Values> values;
  for (auto const& entry : run.state()) {
    if (entry.kind == "master") values[entry.name] = values_of(entry);
  }
  return values;
}

/// Numbers first … first + count of a stream of the seed that small runs have, times `deviation`.
Values numbers(std::uint32_t stream, std::int64_t first, std::int64_t count, double deviation) {
  RngKey const key{1337, RngPurpose::initialise, 0, stream};
  Values values;
  for (std::int64_t i = first; i < first + count; ++i) {
    values.push_back(static_cast<float>(deviation * random_normal(key, static_cast<std::uint64_t>(i))));
  }
  return values;
}

/// [rows,columns] as [columns,rows].
Values transposed(Values const& values, std::size_t rows) {
  std::size_t const columns = values.size() / rows;
  Values result;
  for (std::size_t c = 0; c < columns; ++c) {
    for (std::size_t r = 0; r < rows; ++r) result.push_back(values[r * columns + c]);
  }
  return result;
}

} // namespace

TEST_CASE("a seed gives the model that it always gave, however its tensors are cut and stored") {
  // Streams are numbered as the tensors were when q, k and v were one: 2 of the embedding, 12 a layer, then the head's.
  auto values =
      first_values(gpt2_model({.layers = 2, .heads = 3, .width = 21, .context = 33, .vocabulary = 257, .tied = false}));
  double const into_residual = 0.02 / std::sqrt(4.0);
  std::int64_t const c = 21;
  CHECK(values["wte.weight"] == numbers(0, 0, 257 * c, 0.02));
  CHECK(values["wpe.weight"] == numbers(1, 0, 33 * c, 0.02));
  for (std::uint32_t layer = 0; layer < 2; ++layer) {
    std::string const h = "h." + std::to_string(layer) + ".";
    std::uint32_t const stream = 2 + 12 * layer;
    INFO(h);
    CHECK(values[h + "attn.q.weight"] == numbers(stream + 2, 0, c * c, 0.02));
    CHECK(values[h + "attn.k.weight"] == numbers(stream + 2, c * c, c * c, 0.02));
    CHECK(values[h + "attn.v.weight"] == numbers(stream + 2, 2 * c * c, c * c, 0.02));
    CHECK(values[h + "attn.k.bias"] == Values(21));
    CHECK(values[h + "attn.proj.weight"] == transposed(numbers(stream + 4, 0, c * c, into_residual), 21));
    CHECK(values[h + "mlp.fc.weight"] == numbers(stream + 8, 0, 4 * c * c, 0.02));
    CHECK(values[h + "mlp.proj.weight"] == transposed(numbers(stream + 10, 0, 4 * c * c, into_residual), 21));
    CHECK(values[h + "ln_2.weight"] == Values(21, 1.0f));
  }
  CHECK(values["lm_head.weight"] == numbers(2 + 24 + 2, 0, 257 * c, 0.02));
}

TEST_CASE("q, k and v stand one after the other in a layer's block, weights and biases") {
  for (std::int64_t const width : {3, 21, 64}) {
    auto const layout = architecture_of(gpt2_model({.layers = 1, .heads = 1, .width = width}))->layout();
    std::map<std::string, Interval> places;
    for (auto const& tensor : layout[1].tensors()) places[tensor.spec.name] = tensor.interval();
    for (std::string const kind : {".weight", ".bias"}) {
      CHECK(places.at("h.0.attn.k" + kind).begin == places.at("h.0.attn.q" + kind).end);
      CHECK(places.at("h.0.attn.v" + kind).begin == places.at("h.0.attn.k" + kind).end);
    }
  }
}

TEST_CASE("every element of format 1 is one of today's, and stood where its first value was drawn") {
  ModelConfig const model = gpt2_model({.layers = 2, .heads = 3, .width = 21, .context = 33, .vocabulary = 257});
  auto const architecture = architecture_of(model);
  std::map<std::string, std::vector<int>> taken; // how often each element of a former tensor is used
  for (auto const& block : architecture->layout()) {
    for (auto const& [spec, offset] : block.tensors()) {
      INFO(spec.name);
      CHECK_FALSE(architecture->former_tensor(spec.name, 2).has_value());
      auto const former = architecture->former_tensor(spec.name, 1).value_or(FormerTensor{spec.name, spec.shape});
      std::int64_t size = 1;
      for (auto const extent : former.shape) size *= extent;
      auto& elements = taken[former.name];
      elements.resize(static_cast<std::size_t>(size));
      bool const is_transposed = former.order == FormerTensor::Order::transposed;
      if (is_transposed) CHECK(former.shape == std::vector<std::int64_t>{spec.shape[1], spec.shape[0]});
      for (std::int64_t i = 0; i < spec.size(); ++i) {
        std::int64_t const row_of_former = is_transposed ? i % former.shape[0] : 0;
        std::int64_t const at =
            former.begin + (is_transposed ? row_of_former * former.shape[1] + i / former.shape[0] : i);
        ++elements.at(static_cast<std::size_t>(at));
        if (spec.init.kind == TensorInit::Kind::normal) REQUIRE(spec.random_number(i) == at);
      }
    }
  }
  CHECK(taken.size() == 2 + 2 * 12 + 2);
  for (auto const& [name, elements] : taken) {
    INFO(name);
    CHECK(elements == std::vector<int>(elements.size(), 1));
  }
}

TEST_CASE("named sizes have the parameters that their names promise") {
  std::map<std::string, std::int64_t> const parameters = {{"gpt2-124m", 124'439'808},
                                                          {"gpt2-355m", 354'823'168},
                                                          {"gpt2-774m", 774'030'080},
                                                          {"gpt2-1.5b", 1'557'611'200}}; // of OpenAI's checkpoints
  auto const sizes = model_family("gpt2").sizes();
  CHECK(sizes.size() == parameters.size());
  for (auto const& size : sizes) {
    std::map<std::string, std::int64_t> const v(size.values.begin(), size.values.end());
    auto const model =
        gpt2_model({v.at("layers"), v.at("heads"), v.at("width"), v.at("context"), v.at("vocabulary"), true});
    CHECK(parameter_count(architecture_of(model)->layout()) == parameters.at(size.name));
  }
}

TEST_CASE("the work of a batch is 6 operations a weight and token, and attention's pairs") {
  auto const architecture =
      architecture_of(gpt2_model({.layers = 3, .heads = 2, .width = 64, .context = 16, .vocabulary = 1000}));
  std::int64_t matrices = 0; // the products' weights: all matrices but the positions
  for (auto const& block : architecture->layout()) {
    for (auto const& tensor : block.tensors()) {
      if (tensor.spec.shape.size() == 2 && tensor.spec.name != "wpe.weight") matrices += tensor.spec.size();
    }
  }
  // q·k and p·v: 2 · 2 · C operations a pair forward, twice that backward, T(T+1)/2 ≈ T²/2 pairs a window.
  double const pairs = 16.0 * 16.0 / 2.0;
  double const window = 6.0 * static_cast<double>(matrices) * 16 + 3 * 3 * 4.0 * 64 * pairs;
  CHECK(16 * architecture->training_flops(Recompute::none) == Approx(window));
  CHECK(16 * architecture->training_flops(Recompute::unit) > 1.2 * window);

  std::int64_t weights = 0;
  for (auto const& product : architecture->products()) weights += product.times * product.inputs * product.outputs;
  CHECK(weights == matrices);
  auto const attention = *architecture->attention_shape();
  CHECK(attention.times == 3);
  CHECK(attention.heads * attention.head_width == 64);
}

TEST_CASE("a model is described by its shape and its parameters") {
  CHECK(architecture_of(gpt2_model())->describe() ==
        "GPT-2 4L 4H 128C, context 128, vocabulary 256, tied head: 842496 parameters (842.5k)");
  CHECK(architecture_of(gpt2_model({.tied = false}))->shape_text() ==
        "GPT-2 4L 4H 128C, context 128, vocabulary 256, own head");
}
