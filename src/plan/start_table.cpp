#include "plan/start_table.hpp"

#include "comm/rank_list.hpp"
#include "config/schema.hpp"
#include "core/format.hpp"
#include "core/kokkos.hpp"
#include "core/log.hpp"
#include "core/version.hpp"
#include "io/library_versions.hpp"
#include "kernels/gemm.hpp"
#include "model/families.hpp"
#include "plan/delayed_gain.hpp"
#include "plan/job_table.hpp"
#include "plan/rank_plan.hpp"

#include <algorithm>
#include <iterator>

namespace kozero {

namespace {

std::string describe(TokenSet const& set) {
  if (set.windows == 0) return "none";
  return fmt::format("{}, {}: {} tokens in {} windows", set.file->path(), set.file->description(), set.tokens.size(),
                     set.windows);
}

std::string describe_numbers(Config const& config) {
  std::string const compute = text_of(config, "precision.compute");
  std::string const gradients = config.precision.gradients == GradientType::fp32 ? "fp32" : compute;
  std::string text = fmt::format("{} compute, {} gradients, fp32 master and moments", compute, gradients);
  if (config.precision.compute == ComputeType::fp16) {
    text += fmt::format(", loss scale {} at first", config.precision.loss_scale.initial);
  }
  if (config.precision.compute == ComputeType::fp32 && config.precision.tf32) text += ", products in TF32";
  if (config.run.reproducibility == Reproducibility::topology) text += ", the same bits on 1, 2, 4, … ranks";
  return text;
}

std::string describe(ZeroConfig const& zero, OffloadConfig const& offload) {
  std::string text = fmt::format("ZeRO stage {}", zero.stage);
  if (offload.optimizer == OffloadTarget::none) return text;
  text += fmt::format(", {:.4g} % of the optimizer on the host", 100 * offload.ratio);
  if (offload.delays()) {
    text += fmt::format(", from update {} on beside the next batch", *offload.delayed_update.start);
  }
  return text;
}

} // namespace

StartTable start_table(Config const& config, Corpus const& corpus, BatchShape const& batch, Surroundings const& here) {
  auto const& [survey, ranks, exchange, job] = here;
  auto const now = std::chrono::system_clock::now();
  StartTable table;
  auto const row = [&](char const* name, std::string text) { table.rows.emplace_back(name, std::move(text)); };
  row("kozero", version());
  row("run", fmt::format("{} in {}; its deck.yaml has all keys and where each value is from", config.run.name,
                         config.run.dir));
  if (job) row("job", describe(*job, now));
  row("ranks", fmt::format("{} on {} host{} ({} a host), {}", survey.ranks, survey.hosts.size(),
                           survey.hosts.size() == 1 ? "" : "s", to_text(survey.ranks_per_host), ranks));
  if (survey.ranks > 1) row("exchange", exchange);
  row("threads", fmt::format("{} a rank; binding {}", to_text(survey.threads_per_rank), survey.binding));
  if (!survey.devices.empty()) row("devices", survey.devices);
  row("backend", fmt::format("Kokkos {} {}, {}", kokkos_version(), DeviceExec::name(), gemm_backend()));
  row("attention", attention_of(config, batch).text);
  row("libraries", library_versions());
  row("model", architecture_of(config.model)->describe());
  row("training", describe(corpus.train));
  row("validation", describe(corpus.validation));
  row("batch", fmt::format("{} windows ({} a micro-batch x {} accumulated x {} ranks), {} tokens", batch.global(),
                           batch.micro, batch.accumulate, batch.ranks, batch.global() * config.model.context));
  row("updates",
      fmt::format("{}, {:.1f} an epoch", config.run.updates, updates_per_epoch(corpus.train.windows, batch)));
  row("numbers", describe_numbers(config));
  row("sharding", describe(config.zero, config.offload));
  if (config.offload.delays()) {
    HostWork const work = host_reaches_device ? HostWork::takes_turns : HostWork::overlaps;
    row("delay", describe_delayed_gain(batch_times(config, batch, measure_machine_rates(config, batch)), work));
  }
  if (job) {
    for (auto& warning : disagreements(*job, survey, config.run, plan_rank(config, batch, 0).memory, now)) {
      table.warnings.push_back(std::move(warning));
    }
  }
  if (survey.ranks_share_cores) {
    table.warnings.emplace_back(
        "ranks share cores (fewer cores than ranks on a host); start fewer ranks a host, or let "
        "the launcher bind each to its own cores");
  }
  if (survey.threads_exceed_processors) {
    table.warnings.emplace_back(
        "threads exceed processors; set OMP_NUM_THREADS to the processors a rank has, or leave it "
        "unset");
  }
  for (auto const& shared : survey.shared_devices) {
    table.warnings.push_back(fmt::format("{} (each has a part of its memory and speed, and messages go through host "
                                         "memory); start one rank a device",
                                         shared));
  }
  if (!survey.ranks_far_from_device.empty()) {
    table.warnings.push_back(fmt::format("processors and device of {} are on different NUMA nodes (copies between them "
                                         "take a longer way); bind ranks to the processors near their devices: "
                                         "srun --cpu-bind=map_ldom or --cpu-bind=mask_cpu",
                                         name_ranks(survey.ranks_far_from_device)));
  }
  if (!survey.ranks_without_sight.empty()) {
    table.warnings.push_back(
        fmt::format("devices of other ranks on the host are hidden from {} (as by --gpus-per-task, --gpu-bind or a "
                    "CUDA_VISIBLE_DEVICES of each rank's own), so that NCCL may not go from device to device; use "
                    "--gpus-per-node with --gpu-bind=none",
                    name_ranks(survey.ranks_without_sight)));
  }
  std::ranges::copy(corpus.doubts(), std::back_inserter(table.warnings));
  if (corpus.train.windows < batch.global()) {
    table.warnings.push_back(fmt::format("a batch of {} windows is more than the training set's {}; each batch repeats "
                                         "windows",
                                         batch.global(), corpus.train.windows));
  }
  return table;
}

void print(StartTable const& table) {
  for (auto const& [name, text] : table.rows) log::info("{:<11} {}", name, text);
  for (auto const& warning : table.warnings) log::warn("warning: {}", warning);
}

} // namespace kozero
