#include "plan/scaling.hpp"

#include "config/check.hpp"
#include "config/units.hpp"
#include "core/error.hpp"
#include "model/families.hpp"
#include "plan/rank_plan.hpp"
#include "zero/plan.hpp"

#include <algorithm>
#include <array>
#include <map>
#include <string>

namespace kozero {

namespace {

constexpr std::array<char const*, 4> rate_names = {"flops", "within", "between", "latency"};
constexpr char const* rates_example = "--rates flops=4.5e14,within=3e11,between=4.5e10,latency=2e-5";

[[noreturn]] void refuse(std::string const& what, std::string const& why) {
  throw InputError(fmt::format("--rates: {} ({}); write {}", what, why, rates_example));
}

/// The number of "flops=4.5e14", noted under its name.
void note_rate(std::string const& item, std::map<std::string, double>& rates) {
  std::size_t const equals = item.find('=');
  std::string const name = item.substr(0, equals);
  if (std::ranges::find(rate_names, name) == rate_names.end()) {
    refuse(fmt::format("'{}' is no rate", name), "they are flops, within, between and latency");
  }
  if (equals == std::string::npos) refuse(fmt::format("{} has no value", name), "one follows after =");
  std::string const value = item.substr(equals + 1);
  auto const number = parse_real(value);
  if (!number.value) refuse(fmt::format("{} is '{}'", name, value), "which " + number.fault);
  bool const may_be_zero = name == "latency";
  if (*number.value < 0 || (*number.value == 0 && !may_be_zero)) {
    refuse(fmt::format("{} is {}", name, value), may_be_zero ? "seconds are not negative" : "a rate is above zero");
  }
  if (!rates.try_emplace(name, *number.value).second) refuse(fmt::format("{} is there twice", name), "once is enough");
}

double real(std::int64_t value) { return static_cast<double>(value); }

/// Seconds of what a collective moves, by its ways; the two levels of a sum come one after the other.
struct ExchangeTimes {
  double within_s = 0;
  double between_s = 0;
  double latency_s = 0;
  double all() const { return within_s + between_s + latency_s; }
};

ExchangeTimes times_of(std::int64_t calls, std::int64_t bytes, std::int64_t between_hosts_bytes,
                       ClusterRates const& rates) {
  return {.within_s = real(bytes - between_hosts_bytes) / rates.within,
          .between_s = real(between_hosts_bytes) / rates.between,
          .latency_s = real(calls) * rates.latency};
}

ExchangeTimes times_of(CollectiveTraffic const& traffic, ClusterRates const& rates) {
  if (traffic.messages == 0) return {}; // one rank
  return times_of(traffic.calls, traffic.bytes, traffic.between_hosts_bytes, rates);
}

/// Of one call for the first unit's block.
double first_block_s(CollectiveTraffic const& traffic, ClusterRates const& rates) {
  if (traffic.messages == 0) return 0;
  return times_of(1, traffic.first_block.bytes, traffic.first_block.between_hosts_bytes, rates).all();
}

/// Ranks of the rows: one host's, doubled as often as there are ranks for, and all.
std::vector<std::int64_t> ranks_of_rows(std::int64_t ranks, std::int64_t ranks_per_host) {
  std::vector<std::int64_t> rows;
  for (std::int64_t some = ranks_per_host; some < ranks; some *= 2) rows.push_back(some);
  rows.push_back(ranks);
  return rows;
}

} // namespace

ClusterRates parse_rates(std::string_view text) {
  std::map<std::string, double> rates;
  for (std::size_t begin = 0; begin <= text.size();) {
    std::size_t const end = std::min(text.find(',', begin), text.size());
    note_rate(std::string(text.substr(begin, end - begin)), rates);
    begin = end + 1;
  }
  for (char const* const name : rate_names) {
    if (!rates.contains(name)) refuse(fmt::format("{} is missing", name), "a prediction takes all four");
  }
  return {.flops = rates["flops"], .within = rates["within"], .between = rates["between"], .latency = rates["latency"]};
}

PredictedUpdate predict_update(UpdateWork const& work, ClusterRates const& rates) {
  double const forward_s = work.forward_flops / rates.flops;
  double const backward_s = work.backward_flops / rates.flops;
  ExchangeTimes const parameters = times_of(work.traffic.parameters, rates);
  ExchangeTimes const gradients = times_of(work.traffic.gradients, rates);
  // The first gather is waited for before anything is computed, the last reduction ends after everything.
  double const first_s = first_block_s(work.traffic.parameters, rates);
  double const last_s = first_block_s(work.traffic.gradients, rates);
  double const gathered_s = parameters.all() - first_s;
  double const reduced_s = gradients.all() - last_s;

  double const reducing_s = backward_s * real(work.reductions) / real(work.micro_batches);
  double exposed_s = std::max(0.0, reduced_s - reducing_s);
  if (work.gathers == UpdateWork::Gathers::in_passes) {
    exposed_s = std::max(exposed_s, gathered_s + reduced_s - forward_s - backward_s);
  } else {
    exposed_s += std::max(0.0, gathered_s - forward_s / real(work.micro_batches));
  }
  return {.ranks = work.ranks,
          .tokens = work.tokens,
          .compute_s = forward_s + backward_s,
          .within_s = parameters.within_s + gradients.within_s,
          .between_s = parameters.between_s + gradients.between_s,
          .latency_s = parameters.latency_s + gradients.latency_s,
          .exposed_s = first_s + exposed_s + last_s};
}

std::vector<PredictedUpdate> predict_scaling(Config const& config, BatchShape const& batch, std::int64_t ranks_per_host,
                                             ClusterRates const& rates) {
  if (config.offload.optimizer != OffloadTarget::none) {
    throw InputError("--rates: no time is predicted with offload.optimizer: host (it depends on the host's AdamW and "
                     "on the link, of which the four rates say nothing); leave --rates away, or plan with "
                     "offload.optimizer=none");
  }
  auto const architecture = architecture_of(config.model);
  double const tokens = real(batch.micro * batch.accumulate) * real(config.model.context); // of a rank
  double const forward_flops = tokens * architecture->training_flops(Recompute::none) / 3;
  double const all_flops = tokens * architecture->training_flops(config.activations.recompute);
  std::vector<PredictedUpdate> predicted;
  for (std::int64_t const ranks : ranks_of_rows(batch.ranks, ranks_per_host)) {
    check_ranks(config, ranks);
    BatchShape some = batch;
    some.ranks = ranks;
    RankHosts hosts = RankHosts::runs_of(static_cast<int>(ranks_per_host), static_cast<int>(ranks));
    ExchangeWay const way = planned_way(planned_transport(config.parallel), std::move(hosts));
    Plan const plan(sharding_of(config), 0, static_cast<int>(ranks), batch.accumulate);
    bool const in_passes = plan.parameters() == Plan::Keep::shard;
    UpdateWork const work{.ranks = ranks,
                          .tokens = tokens * real(ranks),
                          .forward_flops = forward_flops,
                          .backward_flops = all_flops - forward_flops,
                          .micro_batches = batch.accumulate,
                          .reductions = plan.reductions(),
                          .gathers = in_passes ? UpdateWork::Gathers::in_passes : UpdateWork::Gathers::after_update,
                          .traffic = plan_rank(config, some, 0, way).traffic};
    predicted.push_back(predict_update(work, rates));
  }
  return predicted;
}

double efficiency(PredictedUpdate const& update, std::vector<PredictedUpdate> const& all) {
  auto const of_a_rank = [](PredictedUpdate const& one) { return one.tokens_per_s() / real(one.ranks); };
  return of_a_rank(update) / of_a_rank(all.front());
}

} // namespace kozero
