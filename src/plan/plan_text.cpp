// The page that `kozero plan` prints.
#include "core/format.hpp"
#include "plan/run_plan.hpp"

#include <fmt/format.h>

#include <cmath>
#include <map>
#include <string_view>

namespace kozero {

namespace {

constexpr std::array<std::string_view, 4> formulas = {"16Ψ", "4Ψ + 12Ψ/N", "2Ψ + 14Ψ/N", "16Ψ/N"};

/// As papers count: "120 GB", "31.4 GB", "187 kB".
std::string format_decimal(double bytes) {
  return format_bytes(static_cast<std::int64_t>(std::llround(bytes)), ByteUnits::decimal);
}

std::string or_blank(std::int64_t bytes) { return bytes == 0 ? "" : format_bytes(bytes); }

/// Where ranks are and how sums over them are made, if anybody asked.
std::string levels(PlanRecord const& plan) {
  if (!plan.ranks_per_host) return "";
  std::int64_t const hosts = (plan.ranks + *plan.ranks_per_host - 1) / *plan.ranks_per_host;
  if (hosts == 1) return "; 1 host";
  return fmt::format("; {} hosts of {}{} rank{}, sums {}", hosts,
                     plan.ranks % *plan.ranks_per_host == 0 ? "" : "up to ", *plan.ranks_per_host,
                     *plan.ranks_per_host == 1 ? "" : "s",
                     plan.ranks_of_first_sums ? "within hosts first and then between them" : "in one level");
}

std::string head(PlanRecord const& plan) {
  std::string text = fmt::format("{:<12}{}\n", "model", plan.model);
  text += fmt::format("{:<12}{} windows of {} tokens ({} a micro-batch x {} accumulated x {} ranks)\n", "batch",
                      plan.global, plan.context, plan.micro, plan.accumulate, plan.ranks);
  text += fmt::format("{:<12}zero.stage {}; precision.compute {}, gradients {}; activations.recompute {}\n", "deck",
                      plan.chosen, plan.compute, plan.gradients, plan.recompute);
  auto const& start = plan.delayed_update_start;
  text += fmt::format("{:<12}offload.optimizer {}, ratio {}, delayed_update.start {}\n", "", plan.offload,
                      plan.offload_ratio, start ? std::to_string(*start) : "none");
  text += fmt::format("{:<12}{}\n", "attention", plan.attention);
  text += fmt::format("{:<12}{}{}\n", "transport", plan.transport, levels(plan));
  return text;
}

std::string memory_line(std::string const& name, std::string const& device, std::string const& pinned,
                        std::string const& host) {
  std::string line = fmt::format("  {:<20}{:>12}{:>12}{:>12}", name, device, pinned, host);
  line.erase(line.find_last_not_of(' ') + 1);
  return line + '\n';
}

std::string memory_table(PlanRecord const& plan) {
  auto const& memory = plan.deck_stage().memory;
  std::map<Category, std::map<Space, std::int64_t>> bytes;
  std::map<Space, std::int64_t> totals;
  for (auto const& row : memory) {
    bytes[row.category][row.space] = row.bytes;
    totals[row.space] += row.bytes;
  }
  auto const line = [](std::string const& name, std::map<Space, std::int64_t>& of) {
    return memory_line(name, or_blank(of[Space::device]), or_blank(of[Space::pinned]), or_blank(of[Space::host]));
  };
  auto const limit = [](std::optional<std::int64_t> const& value) { return value ? format_bytes(*value) : "none"; };

  std::string text = "\nMemory of a rank at its peak (rank 0; no rank has more)\n";
  text += memory_line("", "device", "pinned", "host");
  for (auto& [category, of] : bytes) text += line(name_of(category), of);
  text += line("all", totals);
  text += memory_line("limit", limit(plan.device_limit), "", limit(plan.host_limit));
  text +=
      fmt::format("The host's limit counts pinned memory too. Beside that a process takes about {} on its host, for "
                  "the program,\nits libraries and the scratch of matrix products.\n",
                  format_bytes(plan.uncounted_bytes));
  return text;
}

std::string limit_faults(PlanRecord const& plan) {
  auto const& planned = plan.deck_stage();
  std::string text;
  auto const fault = [&](char const* key, Space space, std::int64_t limit) {
    text += fmt::format("\n{} is too small by {} (the run would stop with an error); raise it or shrink a row:{}\n",
                        key, format_bytes(budget_bytes(planned.memory, space) - limit), advice(planned.memory, space));
  };
  if (!planned.device_fits) fault("memory.device_limit", Space::device, *plan.device_limit);
  if (!planned.host_fits) fault("memory.host_limit", Space::host, *plan.host_limit);
  return text;
}

std::string traffic_table(PlanRecord const& plan) {
  UpdateTraffic const& traffic = plan.deck_stage().traffic;
  bool const by_host = plan.ranks_per_host.has_value();
  std::string text = "\nAn update brings rank 0\n";
  if (by_host) text += fmt::format("  {:<20}{:>12}{:>12}{:>12}\n", "", "in all", "own host", "other hosts");
  auto const collective = [&](char const* name, CollectiveTraffic const& row) {
    text += fmt::format("  {:<20}{:>12}", name, format_bytes(row.bytes));
    if (by_host) {
      text += fmt::format("{:>12}{:>12}", format_bytes(row.bytes - row.between_hosts_bytes),
                          format_bytes(row.between_hosts_bytes));
    }
    if (row.calls > 0) text += fmt::format("   {} calls of {}", row.calls, row.collective);
    text += '\n';
  };
  collective("parameters", traffic.parameters);
  collective("gradients", traffic.gradients);
  text += fmt::format("  {:<20}{:>12}\n", "device to host", format_bytes(traffic.to_host_bytes));
  text += fmt::format("  {:<20}{:>12}\n", "host to device", format_bytes(traffic.to_device_bytes));
  return text;
}

/// What a rank keeps of the model, its gradient slot included; the ring of stage 3 is apart.
std::int64_t model_state(std::vector<MemoryRow> const& memory) {
  std::int64_t bytes = 0;
  for (auto const& row : memory) bytes += row.category <= Category::second_moment ? row.bytes : 0;
  return bytes;
}

std::string stages_table(PlanRecord const& plan) {
  auto const row = [](auto const&... cells) { return fmt::format("{:>7}{:>13}{:>13}{:>13}{:>13}{:>13}", cells...); };
  std::string text =
      "\nThe stages of ZeRO: a rank of this run, what an update brings it, its model state; and 16-bit model "
      "state by the\nZeRO paper, here and there. Ψ parameters, N ranks, ! over a limit\n";
  text += row("stage", "device", "host", "received", "state", "paper") +
          fmt::format("   {:.1f}G on {:.0f}\n", plan.paper_parameters / 1e9, plan.paper_ranks);
  for (std::size_t number = 0; number < plan.stages.size(); ++number) {
    PlannedStage const& planned = plan.stages[number];
    std::string const name = fmt::format("{} {}", number == plan.chosen ? ">" : " ", number);
    auto const fitting = [](std::int64_t bytes, bool fits) { return format_bytes(bytes) + (fits ? "" : "!"); };
    if (!planned.refusal.empty()) {
      text += row(name, "refused", "", "", "", format_decimal(planned.formula_bytes));
    } else {
      text +=
          row(name, fitting(budget_bytes(planned.memory, Space::device), planned.device_fits),
              fitting(budget_bytes(planned.memory, Space::host), planned.host_fits),
              format_bytes(planned.traffic.parameters.bytes + planned.traffic.gradients.bytes),
              format_decimal(static_cast<double>(model_state(planned.memory))), format_decimal(planned.formula_bytes));
    }
    text += fmt::format("{:>13} = {}\n", format_decimal(plan.paper_bytes[number]), formulas[number]);
  }
  return text;
}

/// Milliseconds.
std::string ms(double seconds) { return fmt::format("{:.3f}", 1e3 * seconds); }

std::string predicted_table(PlanRecord const& plan) {
  if (!plan.rates) return "";
  auto const row = [](auto const&... cells) {
    return fmt::format("{:>7}{:>13}{:>13}{:>13}{:>11}{:>13}{:>13}{:>12}{:>8}\n", cells...);
  };
  std::string text = fmt::format(
      "\nPredicted time of an update, in ms; each rank has as many windows as here. Exposed is what of the exchange "
      "no\n"
      "computation hides; the optimizer's step, waits and noise are left out (doc/scaling.md). A rank does {}\nand "
      "gets {} from its host, {} from others; a collective takes {} ms beside that.\n",
      format_rate(plan.rates->flops, "FLOP/s"), format_rate(plan.rates->within, "B/s"),
      format_rate(plan.rates->between, "B/s"), ms(plan.rates->latency));
  text += row("ranks", "compute", "own host", "other hosts", "calls", "exposed", "update", "tokens/s", "of 1st");
  for (PredictedUpdate const& update : plan.predicted) {
    text += row(update.ranks, ms(update.compute_s), ms(update.within_s), ms(update.between_s), ms(update.latency_s),
                ms(update.exposed_s), ms(update.update_s()), format_count(update.tokens_per_s()),
                fmt::format("{:.1f} %", 100 * efficiency(update, plan.predicted)));
  }
  return text;
}

std::string checkpoint_line(PlanRecord const& plan) {
  return fmt::format(
      "\nA checkpoint takes {} on disk for master, m and v, over all ranks; names, shapes and checksums come "
      "on top.\nWhile one is saved, up to {} are there (checkpoint.keep, keep_best and the new one).\n",
      format_bytes(plan.checkpoint_bytes), plan.checkpoints_kept + 1);
}

} // namespace

std::string plan_text(PlanRecord const& plan) {
  return head(plan) + memory_table(plan) + limit_faults(plan) + traffic_table(plan) + predicted_table(plan) +
         stages_table(plan) + checkpoint_line(plan);
}

} // namespace kozero
