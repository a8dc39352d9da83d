#include "plan/run_plan.hpp"

#include "config/check.hpp"
#include "config/schema.hpp"
#include "core/error.hpp"
#include "core/version.hpp"
#include "model/families.hpp"
#include "plan/disk_plan.hpp"
#include "plan/rank_plan.hpp"
#include "plan/start_table.hpp"

#include <algorithm>

namespace kozero {

namespace {

/// Model state a rank, in bytes, with 16-bit parameters and gradients: figure 1 of the ZeRO paper (Rajbhandari et al.,
/// 2020), K = 12 for Adam.
std::array<double, 4> paper_formulas(double psi, double n) {
  return {16 * psi, 4 * psi + 12 * psi / n, 2 * psi + 14 * psi / n, 16 * psi / n};
}

bool holds(std::optional<std::int64_t> const& limit, std::vector<MemoryRow> const& memory, Space space) {
  return !limit || budget_bytes(memory, space) <= *limit;
}

PlannedStage plan_stage(Config const& config, BatchShape const& batch, ExchangeWay const& way) {
  PlannedStage stage;
  auto const faults = check(config).faults;
  if (!faults.empty()) {
    stage.refusal = fmt::format("{}: {}", faults.front().keys.front(), faults.front().text);
    return stage;
  }
  RankPlan plan = plan_rank(config, batch, 0, way);
  stage.memory = std::move(plan.memory);
  stage.traffic = std::move(plan.traffic);
  stage.device_fits = holds(config.memory.device_limit_bytes, stage.memory, Space::device);
  stage.host_fits = holds(config.memory.host_limit_bytes, stage.memory, Space::host);
  return stage;
}

} // namespace

PlanRecord plan_run(Config const& config, BatchShape const& batch, PlannedCluster const& cluster) {
  constexpr double paper_parameters = 7.5e9;
  constexpr double paper_ranks = 64;
  auto const architecture = architecture_of(config.model);
  std::int64_t const psi = parameter_count(architecture->layout());
  if (static_cast<double>(psi) * 32 * static_cast<double>(batch.accumulate) > 0x1p62) {
    throw InputError(fmt::format("model: {} parameters are too many to plan with (what an update "
                                 "moves may pass 2^62 bytes); make the model or batch.accumulate smaller",
                                 psi));
  }
  Config decided = config;
  decided.parallel.transport = planned_transport(config.parallel);
  std::int64_t const ranks_per_host = std::min(cluster.ranks_per_host.value_or(batch.ranks), batch.ranks);
  ExchangeWay const way = planned_way(
      decided.parallel.transport, RankHosts::runs_of(static_cast<int>(ranks_per_host), static_cast<int>(batch.ranks)));
  PlanRecord record{.version = version(),
                    .model = architecture->describe(),
                    .parameters = psi,
                    .ranks = batch.ranks,
                    .micro = batch.micro,
                    .accumulate = batch.accumulate,
                    .global = batch.global(),
                    .context = config.model.context,
                    .compute = text_of(config, "precision.compute"),
                    .gradients = text_of(config, "precision.gradients"),
                    .offload = text_of(config, "offload.optimizer"),
                    .recompute = text_of(config, "activations.recompute"),
                    .attention = attention_of(config, batch).text,
                    .transport = text_of(decided, "parallel.transport"),
                    .ranks_per_host = cluster.ranks_per_host,
                    .ranks_of_first_sums = way.ranks_of_host,
                    .offload_ratio = config.offload.ratio,
                    .delayed_update_start = config.offload.delayed_update.start,
                    .device_limit = config.memory.device_limit_bytes,
                    .host_limit = config.memory.host_limit_bytes,
                    .uncounted_bytes = uncounted_host_bytes,
                    .checkpoint_bytes = checkpoint_bytes(psi),
                    .checkpoints_kept = checkpoints_kept(config.checkpoint),
                    .paper_parameters = paper_parameters,
                    .paper_ranks = paper_ranks,
                    .paper_bytes = paper_formulas(paper_parameters, paper_ranks)};
  auto const formulas = paper_formulas(static_cast<double>(psi), static_cast<double>(batch.ranks));
  for (std::size_t number = 0; number < record.stages.size(); ++number) {
    Config other = config;
    other.zero = ZeroConfig{static_cast<std::int64_t>(number)};
    record.stages[number] = plan_stage(other, batch, way);
    record.stages[number].formula_bytes = formulas[number];
    if (other.zero == config.zero) record.chosen = number;
  }
  if (cluster.rates) {
    record.rates = cluster.rates;
    record.predicted = predict_scaling(config, batch, ranks_per_host, *cluster.rates);
  }
  return record;
}

} // namespace kozero
