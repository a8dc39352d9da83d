#pragma once
#include "comm/ranks.hpp"
#include "config/config.hpp"
#include "core/ledger.hpp"
#include "data/batch_shape.hpp"

#include <optional>
#include <string>
#include <vector>

namespace kozero {

/// What a rank that plans these rows takes of its host's memory: on CPU builds device memory too, and what no ledger
/// counts.
std::int64_t host_bytes_of(std::vector<MemoryRow> const& memory);

/// Says where the ranks of a host will need more than the host has available, or than a control group that they are in
/// leaves (io/host_memory.hpp), and which keys of the deck change that; nothing where all fit, or where systems do not
/// tell. Takes no memory itself. The same on all ranks. Collective. `root` stands before /proc and /sys, for tests.
std::optional<std::string> lack_of_host_memory(Config const& config, BatchShape const& batch, Ranks& ranks,
                                               std::string const& root = "");

} // namespace kozero
