#include "plan/plan_record.hpp"

#include "io/json.hpp"

#include <algorithm>
#include <cmath>

namespace kozero {

namespace {

Json integer(double value) { return std::llround(value); }
Json or_null(std::optional<std::int64_t> const& value) { return value ? Json(*value) : Json(nullptr); }

/// "first_moment"
std::string key_of(Category category) {
  std::string key = name_of(category);
  std::ranges::replace(key, ' ', '_');
  return key;
}

Json json_of(std::vector<MemoryRow> const& memory) {
  Json object = {{"device", Json::object()}, {"pinned", Json::object()}, {"host", Json::object()}};
  for (auto const& row : memory) object[name_of(row.space)][key_of(row.category)] = row.bytes;
  return object;
}

/// Bytes by where they come from, and messages, where somebody asked for hosts.
Json json_of(CollectiveTraffic const& traffic, bool by_host) {
  Json object = {{"collective", traffic.collective}, {"calls", traffic.calls}, {"bytes", traffic.bytes}};
  if (!by_host) return object;
  object["own_host_bytes"] = traffic.bytes - traffic.between_hosts_bytes;
  object["between_hosts_bytes"] = traffic.between_hosts_bytes;
  object["messages"] = traffic.messages;
  object["between_hosts_messages"] = traffic.between_hosts_messages;
  return object;
}

Json json_of(ClusterRates const& rates) {
  return {{"flops", rates.flops}, {"within", rates.within}, {"between", rates.between}, {"latency", rates.latency}};
}

Json json_of(std::vector<PredictedUpdate> const& predicted) {
  Json rows = Json::array();
  for (auto const& update : predicted) {
    rows.push_back({{"ranks", update.ranks},
                    {"compute_s", update.compute_s},
                    {"within_s", update.within_s},
                    {"between_s", update.between_s},
                    {"latency_s", update.latency_s},
                    {"exposed_s", update.exposed_s},
                    {"update_s", update.update_s()},
                    {"tokens_per_s", update.tokens_per_s()},
                    {"efficiency", efficiency(update, predicted)}});
  }
  return rows;
}

/// What a stage needs; for a stage that the deck refuses, why.
Json json_of(PlannedStage const& planned, bool by_host) {
  if (!planned.refusal.empty()) return {{"refused", planned.refusal}};
  return {{"fits", planned.device_fits && planned.host_fits},
          {"device_fits", planned.device_fits},
          {"host_fits", planned.host_fits},
          {"device_bytes", budget_bytes(planned.memory, Space::device)},
          {"host_bytes", budget_bytes(planned.memory, Space::host)},
          {"memory", json_of(planned.memory)},
          {"received",
           {{"parameters", json_of(planned.traffic.parameters, by_host)},
            {"gradients", json_of(planned.traffic.gradients, by_host)}}},
          {"host_link",
           {{"to_host_bytes", planned.traffic.to_host_bytes}, {"to_device_bytes", planned.traffic.to_device_bytes}}},
          {"formula_bytes", integer(planned.formula_bytes)}};
}

} // namespace

std::string to_json(PlanRecord const& plan) {
  bool const by_host = plan.ranks_per_host.has_value();
  Json stages = Json::array();
  for (std::size_t number = 0; number < plan.stages.size(); ++number) {
    Json entry = {{"stage", number}};
    entry.update(json_of(plan.stages[number], by_host));
    stages.push_back(std::move(entry));
  }
  Json paper = {{"parameters", integer(plan.paper_parameters)}, {"ranks", integer(plan.paper_ranks)}};
  for (double const bytes : plan.paper_bytes) paper["bytes"].push_back(integer(bytes));

  Json object = {
      {"kozero", plan.version},
      {"parameters", plan.parameters},
      {"ranks", plan.ranks},
      {"stage", plan.chosen},
      {"batch",
       {{"micro", plan.micro}, {"accumulate", plan.accumulate}, {"global", plan.global}, {"context", plan.context}}},
      {"compute", plan.compute},
      {"gradients", plan.gradients},
      {"offload", plan.offload},
      {"offload_ratio", plan.offload_ratio},
      {"delayed_update_start", or_null(plan.delayed_update_start)},
      {"recompute", plan.recompute},
      {"attention", plan.attention},
      {"transport", plan.transport},
      {"ranks_per_host", or_null(plan.ranks_per_host)},
      {"ranks_of_first_sums", plan.ranks_of_first_sums ? Json(*plan.ranks_of_first_sums) : Json(nullptr)},
      {"device_limit", or_null(plan.device_limit)},
      {"host_limit", or_null(plan.host_limit)}};
  object.update(json_of(plan.deck_stage(), by_host));
  object["uncounted_bytes"] = plan.uncounted_bytes;
  object["checkpoint_bytes"] = plan.checkpoint_bytes;
  object["checkpoints_kept"] = plan.checkpoints_kept;
  object["stages"] = std::move(stages);
  if (plan.rates) object["rates"] = json_of(*plan.rates);
  if (plan.rates) object["predicted"] = json_of(plan.predicted);
  object["paper"] = std::move(paper);
  return object.dump(2) + '\n';
}

} // namespace kozero
