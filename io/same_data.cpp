#include "io/same_data.hpp"

#include "comm/survey.hpp"
#include "core/error.hpp"

#include <algorithm>
#include <filesystem>

namespace kozero {

namespace {

void require_same_file(TokenFile const& file, Ranks& ranks) {
  auto const fingerprints = ranks.gather(to_text(file.fingerprint()));
  auto const other = std::ranges::find_if(fingerprints, [&](auto const& text) { return text != fingerprints[0]; });
  if (other == fingerprints.end()) return;
  auto const places =
      ranks.gather(fmt::format("rank {} on host {}: '{}' has {}", ranks.rank(), host_name(),
                               std::filesystem::absolute(file.path()).string(), to_text(file.fingerprint())));
  throw SharedError(fmt::format("ranks have different data ({}; {}); give all hosts copies of one file", places[0],
                                places[static_cast<std::size_t>(other - fingerprints.begin())]),
                    exit_bad_input);
}

} // namespace

void require_same_data(Corpus const& corpus, Ranks& ranks) {
  require_same_file(*corpus.train.file, ranks);
  if (auto const* const file = corpus.validation_file()) require_same_file(*file, ranks);
}

} // namespace kozero
