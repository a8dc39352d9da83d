#pragma once
#include "comm/survey.hpp"
#include "config/config.hpp"
#include "data/batch_shape.hpp"
#include "io/corpus.hpp"

#include <string>
#include <vector>

namespace kozero {

/// What `train` prints before it starts: the machine, the libraries, the model, the data and the batch.
struct StartTable {
  std::vector<std::pair<std::string, std::string>> rows;
  std::vector<std::string> warnings;
};

StartTable start_table(Config const& config, Corpus const& corpus, BatchShape const& batch, Survey const& survey,
                       std::string const& ranks);

void print(StartTable const& table);

} // namespace kozero
