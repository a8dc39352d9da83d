#include "plan/usage_table.hpp"

#include "core/format.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <utility>

namespace kozero {

namespace {

std::string line(std::string const& what, std::int64_t predicted, std::int64_t measured) {
  std::int64_t const difference = measured - predicted;
  std::string const verdict =
      difference == 0 ? "=" : fmt::format("{}{}", difference > 0 ? "+" : "", format_bytes(difference));
  return fmt::format("  {:<24} {:>12} {:>12}  {}", what, format_bytes(predicted), format_bytes(measured), verdict);
}

} // namespace

std::vector<std::string> usage_table(RankPlan const& plan, Ledger const& ledger, MostMoved const& moved) {
  std::vector<MemoryRow> const measured = ledger.peak_rows();
  std::map<std::pair<Space, Category>, std::int64_t> predicted; // of every row that either has
  for (auto const& row : measured) predicted[{row.space, row.category}] = 0;
  for (auto const& row : plan.memory) predicted[{row.space, row.category}] = row.bytes;

  std::vector<std::string> lines = {fmt::format("{:<26} {:>12} {:>12}", "rank 0's memory", "predicted", "measured")};
  for (auto const& [row, bytes] : predicted) {
    auto const& [space, category] = row;
    lines.push_back(
        line(fmt::format("{} {}", name_of(space), name_of(category)), bytes, ledger.peak_bytes(space, category)));
  }
  for (auto const& [name, space] : {std::pair("all on the device", Space::device), {"all on the host", Space::host}}) {
    lines.push_back(line(name, budget_bytes(plan.memory, space), budget_bytes(measured, space)));
  }
  if (!moved.anything()) return lines;
  lines.emplace_back("received in an update");
  auto const received = [&](Traffic purpose, CollectiveTraffic const& planned) {
    std::int64_t const far = moved.between_hosts(purpose);
    lines.push_back(line(name_of(purpose), planned.bytes, moved.received(purpose)));
    if (planned.between_hosts_bytes == 0 && far == 0) return;
    lines.push_back(line("  from other hosts", planned.between_hosts_bytes, far));
  };
  received(Traffic::parameters, plan.traffic.parameters);
  received(Traffic::gradients, plan.traffic.gradients);
  if (plan.traffic.to_device_bytes == 0 && moved.link().up_bytes == 0) return lines;
  lines.emplace_back("over the host link in an update");
  lines.push_back(line("device to host", plan.traffic.to_host_bytes, moved.link().down_bytes));
  lines.push_back(line("host to device", plan.traffic.to_device_bytes, moved.link().up_bytes));
  return lines;
}

} // namespace kozero
