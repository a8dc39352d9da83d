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

Json json_of(CollectiveTraffic const& traffic) {
  return {{"collective", traffic.collective}, {"calls", traffic.calls}, {"bytes", traffic.bytes}};
}

/// What a stage needs; for a stage that the deck refuses, why.
Json json_of(PlannedStage const& planned) {
  if (!planned.refusal.empty()) return {{"refused", planned.refusal}};
  return {{"fits", planned.device_fits && planned.host_fits},
          {"device_fits", planned.device_fits},
          {"host_fits", planned.host_fits},
          {"device_bytes", budget_bytes(planned.memory, Space::device)},
          {"host_bytes", budget_bytes(planned.memory, Space::host)},
          {"memory", json_of(planned.memory)},
          {"received",
           {{"parameters", json_of(planned.traffic.parameters)}, {"gradients", json_of(planned.traffic.gradients)}}},
          {"host_link",
           {{"to_host_bytes", planned.traffic.to_host_bytes}, {"to_device_bytes", planned.traffic.to_device_bytes}}},
          {"formula_bytes", integer(planned.formula_bytes)}};
}

} // namespace

std::string to_json(PlanRecord const& plan) {
  Json stages = Json::array();
  for (std::size_t number = 0; number < plan.stages.size(); ++number) {
    Json entry = {{"stage", number}};
    entry.update(json_of(plan.stages[number]));
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
      {"device_limit", or_null(plan.device_limit)},
      {"host_limit", or_null(plan.host_limit)}};
  object.update(json_of(plan.deck_stage()));
  object["uncounted_bytes"] = plan.uncounted_bytes;
  object["checkpoint_bytes"] = plan.checkpoint_bytes;
  object["checkpoints_kept"] = plan.checkpoints_kept;
  object["stages"] = std::move(stages);
  object["paper"] = std::move(paper);
  return object.dump(2) + '\n';
}

} // namespace kozero
