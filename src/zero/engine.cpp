#include "zero/engine.hpp"

#include "kernels/elementwise.hpp"
#include "optim/adamw.hpp"
#include "zero/state_hash.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

namespace kozero {

template <class T>
Engine<T>::Engine(Plan const& plan, ModelLayout layout, std::vector<UnitUses> uses, Communicator& comm, Ledger& ledger)
    : plan_(plan), layout_(std::move(layout)), uses_(std::move(uses)), comm_(comm), ledger_(ledger),
      params_(make_param_store<T>(plan_, layout_, uses_, comm, ledger)),
      grads_(make_grad_store(plan_, layout_, uses_, comm, ledger)), optimizer_(plan_, layout_, ledger) {}

template <class T>
void Engine<T>::initialise(Lane const& lane, std::int64_t seed) {
  optimizer_.initialise(layout_, seed);
  publish_master(lane);
}

template <class T>
void Engine<T>::publish_master(Lane const& lane) {
  for (int b = 0; b < optimizer_.count(); ++b) {
    auto const& block = optimizer_.block(b);
    std::int64_t const count = block.interval.size();
    convert<T, float>(lane, make_vec(params_->updated(b), count), make_vec<float const>(block.master.data(), count));
  }
  params_->publish(lane);
}

template <class T>
void Engine<T>::begin(Lane const& lane, std::vector<Visit> const& visits, MicroBatchPlace place) {
  params_->begin(visits);
  grads_->begin(lane, place);
}

template <class T>
std::vector<Vec<T const>> Engine<T>::params(Lane const& lane, Visit visit) {
  params_->fetch(lane, visit);
  auto const& uses = uses_[visit.unit];
  std::vector<Vec<T const>> blocks;
  for (int const block : visit.phase == Phase::forward ? uses.forward : uses.backward) {
    blocks.push_back(params_->block(block));
  }
  return blocks;
}

template <class T>
std::vector<Vec<float>> Engine<T>::grads(Lane const& lane, int unit) {
  std::vector<Vec<float>> blocks;
  for (int const block : uses_[unit].gradients) blocks.push_back(grads_->block(lane, block));
  return blocks;
}

template <class T>
double Engine<T>::gradient_norm(Lane const& lane) const {
  double squares = 0;
  for (std::size_t b = 0; b < layout_.size(); ++b) {
    Interval const part = plan_.counted(plan_.partition(layout_[b].size()));
    squares += sum_of_squares(lane, make_vec<float const>(grads_->reduced(static_cast<int>(b), part), part.size()));
  }
  comm_.sum(std::span(&squares, 1));
  return std::sqrt(squares);
}

template <class T>
std::string Engine<T>::first_bad_tensor(Lane const& lane) const {
  constexpr std::int64_t none = std::numeric_limits<std::int64_t>::max();
  std::int64_t first = none; // in the model's blocks laid end to end
  std::int64_t start = 0;
  for (std::size_t b = 0; b < layout_.size() && first == none; ++b) {
    Interval const part = plan_.counted(plan_.partition(layout_[b].size()));
    std::int64_t const found =
        first_non_finite(lane, make_vec<float const>(grads_->reduced(static_cast<int>(b), part), part.size()));
    if (found < part.size()) first = start + part.begin + found;
    start += layout_[b].size();
  }
  auto const all = comm_.gather(first);
  first = *std::min_element(all.begin(), all.end());
  KOZERO_ASSERT(first != none); // squares of finite fp32 do not overflow in double
  start = 0;
  for (auto const& block : layout_) {
    if (first < start + block.size()) return block.tensor_at(first - start).spec.name;
    start += block.size();
  }
  return "";
}

template <class T>
UpdateReport Engine<T>::update(Lane const& lane, OptimizerConfig const& config, double lr, std::int64_t t) {
  UpdateReport report;
  report.norm = gradient_norm(lane);
  if (!std::isfinite(report.norm)) {
    report.applied = false;
    report.clip = 0;
    report.bad_tensor = first_bad_tensor(lane);
    return report;
  }
  if (config.clip) report.clip = std::min(1.0, *config.clip / (report.norm + 1e-6));
  AdamWScalars const scalars(config, lr, t, report.clip);
  for (int b = 0; b < optimizer_.count(); ++b) {
    auto const& block = optimizer_.block(b);
    AdamWShard<T> const shard{block.interval.size(), block.decay_count, block.master.data(),
                              block.m.data(),        block.v.data(),    grads_->reduced(b, block.interval),
                              DType::f32,            params_->updated(b)};
    adamw_step(lane, shard, scalars);
  }
  params_->publish(lane);
  return report;
}

template <class T>
std::vector<StateEntry> Engine<T>::state() const {
  return optimizer_.entries(layout_);
}

template <class T>
std::string Engine<T>::state_hash(Lane const& lane) const {
  return hash_state(lane, plan_, layout_, optimizer_, comm_, ledger_);
}

template class Engine<float>;
template class Engine<bf16>;

} // namespace kozero
