#pragma once
#include "io/checkpoint.hpp"
#include "io/corpus.hpp"

#include <string>
#include <vector>

namespace kozero {

/// What a run that goes on has for data, beside what its checkpoint was trained on.
struct ResumedData {
  std::vector<std::string> same;  // keys of the deck whose file is the one it was, wherever it lies
  std::vector<std::string> other; // a line for each file that is another
  bool known = true;              // false: the checkpoint, an older one, does not say
};

ResumedData compare_data(CheckpointInfo const& checkpoint, Corpus const& corpus);

} // namespace kozero
