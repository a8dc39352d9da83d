#pragma once
#include "config/config.hpp"
#include "core/half.hpp"
#include "core/ledger.hpp"
#include "kernels/attention.hpp"
#include "kernels/linear.hpp"
#include "layout/block_layout.hpp"
#include "layout/former_tensor.hpp"
#include "layout/unit_schedule.hpp"
#include "model/unit.hpp"

#include <memory>
#include <optional>
#include <string>
#include <type_traits>
#include <vector>

namespace kozero {

/// What a model is built for: training keeps activations for the backward pass.
enum class Purpose { train, infer };

struct BuildOptions {
  std::int64_t batch = 1; // windows in a micro-batch
  Recompute recompute = Recompute::none;
  Purpose purpose = Purpose::train;
};

/// A product that a model makes of rows in its forward pass, y [N,outputs] = x [N,inputs] · W; backward there are two
/// more, of the gradients of x and W.
struct ModelProduct {
  std::string name;
  std::int64_t inputs = 0;
  std::int64_t outputs = 0;
  std::int64_t times = 1; // in the model
  WeightOrder order = WeightOrder::out_in;
  /// Activations are of the compute type, all rows at once; logits are fp32, a chunk of rows (kernels/head.hpp).
  enum class Result { activations, logits } result = Result::activations;
};

/// Causal attention of a model.
struct ModelAttention {
  std::int64_t heads = 0;
  std::int64_t head_width = 0;
  std::int64_t times = 1; // in the model
  AttentionWays ways = AttentionWays::all;
};

/// The units of a model, in order, with what flows between them. T is the compute type.
template <class T>
struct UnitList {
  std::vector<DeviceBuffer<T>> streams; // the Views that units were built with point into these
  std::vector<std::unique_ptr<Unit<T>>> units;
  Head<T>* head = nullptr; // the last of units
};

/// What a family of models is to the rest of the program, for one shape. architecture_of (model/families.hpp) makes it.
class Architecture {
public:
  virtual ~Architecture() = default;

  /// The tensors in unit order.
  virtual ModelLayout layout() const = 0;
  /// Which blocks each unit reads and adds to.
  virtual std::vector<UnitUses> uses() const = 0;

  /// Name and shape: "… 4L 4H 128C, context 128, vocabulary 256, tied head".
  virtual std::string shape_text() const = 0;
  /// shape_text with the number of parameters: "…: 842496 parameters (842.5k)".
  std::string describe() const;

  /// Floating-point operations of forward and backward passes a token: 2 for each weight forward, 4 backward, and
  /// attention over the half of the pairs that is not masked (PaLM, 2022, appendix B).
  virtual double training_flops(Recompute recompute) const = 0;
  /// The matrix products of a micro-batch, at least one: what the speed of products is measured with.
  virtual std::vector<ModelProduct> products() const = 0;
  virtual std::optional<ModelAttention> attention_shape() const { return std::nullopt; }

  /// How training computes attention with micro-batches of `batch` windows, and why. InputError as choose_attention.
  virtual AttentionChoice attention(DType compute, std::int64_t batch) const = 0;

  /// Where the tensor of that name stood in checkpoints of an older format; nothing: under its name, as it stands.
  virtual std::optional<FormerTensor> former_tensor(std::string const& name, std::int64_t format_version) const = 0;
  /// All of them, by today's names.
  FormerTensors former_tensors(std::int64_t format_version) const;

  /// `layout` is this architecture's and outlives the units. Memory comes from `ledger`.
  template <class T>
  UnitList<T> units(ModelLayout const& layout, BuildOptions const& options, Ledger& ledger) const {
    return build_units(std::type_identity<T>(), layout, options, ledger);
  }

private:
  virtual UnitList<float> build_units(std::type_identity<float>, ModelLayout const&, BuildOptions const&,
                                      Ledger&) const = 0;
  virtual UnitList<bf16> build_units(std::type_identity<bf16>, ModelLayout const&, BuildOptions const&,
                                     Ledger&) const = 0;
  virtual UnitList<fp16> build_units(std::type_identity<fp16>, ModelLayout const&, BuildOptions const&,
                                     Ledger&) const = 0;
};

/// Base of a family's architecture: its `template <class T> UnitList<T> build(layout, options, ledger) const` builds
/// the units of every compute type.
template <class Derived>
class ArchitectureOf : public Architecture {
private:
  UnitList<float> build_units(std::type_identity<float>, ModelLayout const& layout, BuildOptions const& options,
                              Ledger& ledger) const final {
    return derived().template build<float>(layout, options, ledger);
  }
  UnitList<bf16> build_units(std::type_identity<bf16>, ModelLayout const& layout, BuildOptions const& options,
                             Ledger& ledger) const final {
    return derived().template build<bf16>(layout, options, ledger);
  }
  UnitList<fp16> build_units(std::type_identity<fp16>, ModelLayout const& layout, BuildOptions const& options,
                             Ledger& ledger) const final {
    return derived().template build<fp16>(layout, options, ledger);
  }
  Derived const& derived() const { return static_cast<Derived const&>(*this); }
};

} // namespace kozero
