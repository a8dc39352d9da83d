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

/// Where a run takes place.
struct Surroundings {
  Survey survey;
  std::string ranks;           // Ranks::description()
  std::string exchange;        // TransportChoice::text
  std::optional<SlurmJob> job; // that the run is part of; what it gives and the run does not take, or the other way
                               // round, is warned of
};

StartTable start_table(Config const& config, Corpus const& corpus, BatchShape const& batch, Surroundings const& here);

void print(StartTable const& table);

} // namespace kozero
