#pragma once
#include "comm/slurm_job.hpp"
#include "comm/survey.hpp"
#include "config/config.hpp"
#include "data/batch_shape.hpp"
#include "io/corpus.hpp"

#include <optional>
#include <string>
#include <vector>

namespace kozero {

/// What `train` prints before it starts: the machine, the libraries, the model, the data and the batch.
struct StartTable {
  std::vector<std::pair<std::string, std::string>> rows;
  std::vector<std::string> warnings;
};

/// `job`: the batch job that the run is part of, if any; what it gives and the run does not take, or the other way
/// round, is warned of.
StartTable start_table(Config const& config, Corpus const& corpus, BatchShape const& batch, Survey const& survey,
                       std::string const& ranks, std::optional<SlurmJob> const& job);

void print(StartTable const& table);

} // namespace kozero
