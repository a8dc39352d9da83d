#pragma once
// What the deck's section `model` has of each family of models. Families register when a program starts; src/model does
// so for those that are built in.

#include "config/config.hpp"
#include "config/finding.hpp"
#include "config/key.hpp"

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace kozero {

/// A published shape: a word of model.size, and the whole numbers that it gives to keys of the section.
struct NamedSize {
  std::string name;
  std::vector<std::pair<std::string, std::int64_t>> values; // "layers", 12
};

/// What grows with a micro-batch.
struct MicroBatchLoad {
  double elements = 0;           // a token, of all activations that are kept at once
  std::int64_t teams = 1;        // of threads, a token, in one launch
  std::vector<std::string> keys; // of the deck that these follow from
};

/// The keys that a family has of its own. Keys are named without their section, "layers", where they are given to the
/// schema and in sizes, and with it, "model.layers", in findings.
class ModelFamily {
public:
  /// True if the values of all these keys are the deck's, and within their limits.
  using Sound = std::function<bool(std::vector<std::string> const& keys)>;

  virtual ~ModelFamily() = default;
  virtual std::string name() const = 0; // the word of model.family
  virtual FamilyKeys defaults() const = 0;
  /// They point into `own`, which is of this family.
  virtual std::vector<Key> keys(FamilyKeys& own) const = 0;
  virtual std::vector<NamedSize> sizes() const { return {}; }
  /// What is wrong with one key beside another.
  virtual std::vector<Finding> faults(ModelConfig const& model, Sound const& sound) const = 0;
  virtual MicroBatchLoad load(ModelConfig const& model) const = 0;
};

/// The first family is the default one of a deck; no two have one name. Before any configuration is made; not from
/// several threads.
void register_model_family(std::shared_ptr<ModelFamily const> family);
std::vector<std::shared_ptr<ModelFamily const>> const& model_families();
/// InputError when there is none of that name.
ModelFamily const& model_family(std::string_view name);

} // namespace kozero
