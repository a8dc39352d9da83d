#include "core/ledger.hpp"

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
  case Category::logits: return "logits";
  case Category::ring: return "gather ring";
  case Category::staging: return "staging";
  case Category::workspace: return "workspace";
  }
  return "?";
}

namespace {

// The deck key that makes a row smaller.
char const* remedy(Category category) {
  switch (category) {
  case Category::parameters:
  case Category::ring: return "zero.stage: 3, or a smaller model";
  case Category::gradients: return "zero.stage: 2 or 3";
  case Category::master:
  case Category::first_moment:
  case Category::second_moment: return "zero.stage: 1 to 3 on more ranks";
  case Category::activations: return "batch.micro, model.context or activations.recompute: unit";
  case Category::staging: return "nothing (messages take a fixed size); raise the limit";
  case Category::logits:
  case Category::workspace: return "batch.micro";
  }
  return "";
}

/// Pinned memory is host memory.
Space budget_of(Space space) { return space == Space::device ? Space::device : Space::host; }

double mib(std::int64_t bytes) { return static_cast<double>(bytes) / (1 << 20); }

} // namespace

void Ledger::set_limit(Space space, std::int64_t limit_bytes) { limits_[budget_of(space)] = limit_bytes; }

void Ledger::require_room(Space space, std::string const& label, std::int64_t bytes) const {
  auto const limit = limits_.find(budget_of(space));
  if (limit == limits_.end()) return;
  std::int64_t taken = 0;
  std::map<Category, std::int64_t> held;
  for (auto const& [other, account] : accounts_) {
    if (budget_of(other) != budget_of(space)) continue;
    taken += account.bytes;
    for (auto const& [row, row_bytes] : account.rows) held[row] += row_bytes;
  }
  if (taken + bytes <= limit->second) return;
  std::vector<std::pair<Category, std::int64_t>> rows(held.begin(), held.end());
  std::sort(rows.begin(), rows.end(), [](auto const& a, auto const& b) { return a.second > b.second; });
  std::string list;
  for (auto const& [row, row_bytes] : rows) {
    list += fmt::format("\n  {:<14} {:>10.1f} MiB   smaller with {}", name_of(row), mib(row_bytes), remedy(row));
  }
  throw LimitError(fmt::format("{} memory: '{}' wants {:.1f} MiB more ({:.1f} of {:.1f} MiB are taken); raise "
                               "memory.{}_limit or shrink a row:{}",
                               name_of(space), label, mib(bytes), mib(taken), mib(limit->second),
                               name_of(budget_of(space)), list));
}

void Ledger::take(Space space, Category category, std::string const& label, std::int64_t bytes) {
  require_room(space, label, bytes);
  Account& account = accounts_[space];
  account.bytes += bytes;
  account.peak_bytes = std::max(account.peak_bytes, account.bytes);
  account.rows[category] += bytes;
}

void Ledger::give(Space space, Category category, std::int64_t bytes) {
  accounts_[space].bytes -= bytes;
  accounts_[space].rows[category] -= bytes;
}

std::int64_t Ledger::bytes(Space space, Category category) const {
  auto const account = accounts_.find(space);
  if (account == accounts_.end()) return 0;
  auto const row = account->second.rows.find(category);
  return row == account->second.rows.end() ? 0 : row->second;
}

std::int64_t Ledger::bytes(Space space) const {
  auto const account = accounts_.find(space);
  return account == accounts_.end() ? 0 : account->second.bytes;
}

std::int64_t Ledger::peak_bytes(Space space) const {
  auto const account = accounts_.find(space);
  return account == accounts_.end() ? 0 : account->second.peak_bytes;
}

} // namespace kozero
