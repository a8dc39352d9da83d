#pragma once
#include "core/ledger.hpp"
#include "plan/rank_plan.hpp"
#include "train/most_moved.hpp"

#include <string>
#include <vector>

namespace kozero {

/// Predicted beside measured, a line each: what each row of the ledger held at the most, and what an update moved.
std::vector<std::string> usage_table(RankPlan const& plan, Ledger const& ledger, MostMoved const& moved);

} // namespace kozero
