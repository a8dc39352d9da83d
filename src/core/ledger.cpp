#include "core/ledger.hpp"

#include "core/format.hpp"

#include <algorithm>

namespace kozero {

char const* name_of(Space space) {
  switch (space) {
  case Space::device: return "device";
  case Space::pinned: return "pinned";
  case Space::host: return "host";
  }
  return "?";
}

char const* name_of(Category category) {
  switch (category) {
  case Category::parameters: return "parameters";
  case Category::gradients: return "gradients";
  case Category::master: return "master";
  case Category::first_moment: return "first moment";
  case Category::second_moment: return "second moment";
  case Category::activations: return "activations";
  case Category::recompute: return "recompute peak";
  case Category::logits: return "logits";
  case Category::ring: return "gather ring";
  case Category::staging: return "staging";
  case Category::snapshot: return "snapshot";
  case Category::workspace: return "workspace";
  }
  return "?";
}

namespace {

// The deck key that makes a row smaller.
char const* remedy(Space budget, Category category) {
  bool const on_host = budget == Space::host;
  switch (category) {
  case Category::parameters:
  case Category::ring:
    return on_host ? "more ranks, or no offload.delayed_update" : "zero.stage: 3 on more ranks, or a smaller model";
  case Category::gradients:
    return on_host ? "precision.gradients: compute, more ranks or a smaller offload.ratio"
                   : "what is not set of zero.stage: 2 or 3, precision.gradients: compute, offload.optimizer: host";
  case Category::master:
  case Category::first_moment:
  case Category::second_moment:
    return on_host ? "more ranks or a smaller offload.ratio"
                   : "zero.stage: 1 to 3 on more ranks, or offload.optimizer: host";
  case Category::activations: return "batch.micro, model.context or, if it is not set, activations.recompute: unit";
  case Category::recompute: return "batch.micro or model.context";
  case Category::staging: return "nothing (messages take a fixed size); raise the limit";
  case Category::snapshot: return "checkpoint.async: false, or more ranks";
  case Category::logits:
  case Category::workspace: return "batch.micro";
  }
  return "";
}

} // namespace

Space budget_of(Space space) { return space == Space::device ? Space::device : Space::host; }

std::int64_t budget_bytes(std::vector<MemoryRow> const& rows, Space space) {
  std::int64_t bytes = 0;
  for (auto const& row : rows) bytes += budget_of(row.space) == budget_of(space) ? row.bytes : 0;
  return bytes;
}

std::string advice(std::vector<MemoryRow> const& rows, Space space) {
  std::map<Category, std::int64_t> held;
  for (auto const& row : rows) {
    if (budget_of(row.space) == budget_of(space)) held[row.category] += row.bytes;
  }
  std::vector<std::pair<Category, std::int64_t>> sorted(held.begin(), held.end());
  std::sort(sorted.begin(), sorted.end(), [](auto const& a, auto const& b) { return a.second > b.second; });
  std::string list;
  for (auto const& [category, bytes] : sorted) {
    list += fmt::format("\n  {:<14} {:>14}   smaller with {}", name_of(category), format_bytes(bytes),
                        remedy(budget_of(space), category));
  }
  return list;
}

void Ledger::Figure::add(std::int64_t more) {
  bytes += more;
  peak_bytes = std::max(peak_bytes, bytes);
}

void Ledger::set_limit(Space space, std::int64_t limit_bytes) { limits_[budget_of(space)] = limit_bytes; }

void Ledger::require_room(Space space, std::string const& label, std::int64_t bytes) const {
  auto const limit = limits_.find(budget_of(space));
  if (limit == limits_.end()) return;
  std::vector<MemoryRow> const held = rows(&Figure::bytes);
  std::int64_t const taken = budget_bytes(held, space);
  if (taken + bytes <= limit->second) return;
  throw LimitError(fmt::format("{} memory: '{}' wants {} more ({} of {} are taken); raise "
                               "memory.{}_limit or shrink a row:{}",
                               name_of(space), label, format_bytes(bytes), format_bytes(taken),
                               format_bytes(limit->second), name_of(budget_of(space)), advice(held, space)));
}

void Ledger::take(Space space, Category category, std::string const& label, std::int64_t bytes) {
  require_room(space, label, bytes);
  accounts_[space].all.add(bytes);
  accounts_[space].rows[category].add(bytes);
}

void Ledger::give(Space space, Category category, std::int64_t bytes) {
  accounts_[space].all.add(-bytes);
  accounts_[space].rows[category].add(-bytes);
}

Ledger::Figure Ledger::row(Space space, Category category) const {
  auto const account = accounts_.find(space);
  if (account == accounts_.end()) return {};
  auto const row = account->second.rows.find(category);
  return row == account->second.rows.end() ? Figure{} : row->second;
}

Ledger::Figure Ledger::all(Space space) const {
  auto const account = accounts_.find(space);
  return account == accounts_.end() ? Figure{} : account->second.all;
}

std::vector<MemoryRow> Ledger::rows(std::int64_t Figure::*what) const {
  std::vector<MemoryRow> rows;
  for (auto const& [space, account] : accounts_) {
    for (auto const& [category, figure] : account.rows) {
      if (figure.*what > 0) rows.push_back({space, category, figure.*what});
    }
  }
  return rows;
}

std::int64_t Ledger::bytes(Space space, Category category) const { return row(space, category).bytes; }
std::int64_t Ledger::bytes(Space space) const { return all(space).bytes; }
std::int64_t Ledger::peak_bytes(Space space, Category category) const { return row(space, category).peak_bytes; }
std::int64_t Ledger::peak_bytes(Space space) const { return all(space).peak_bytes; }
std::vector<MemoryRow> Ledger::peak_rows() const { return rows(&Figure::peak_bytes); }

} // namespace kozero
