#include "io/resume_data.hpp"

#include <fmt/format.h>

namespace kozero {

ResumedData compare_data(CheckpointInfo const& checkpoint, Corpus const& corpus) {
  ResumedData result{.known = checkpoint.training_data.has_value()};
  auto const compare = [&](char const* key, std::optional<DataFingerprint> const& before, TokenFile const* file) {
    if (!before || !file) return; // between a fraction and a file the decks differ
    DataFingerprint const& now = file->fingerprint();
    if (now.bytes == before->bytes && now.hash == before->hash) { // how its tokens are read is the deck's
      result.same.emplace_back(key);
    } else {
      result.other.push_back(fmt::format("{}: '{}' has {}; the checkpoint's file had {}", key, file->path(),
                                         to_text(now), to_text(*before)));
    }
  };
  compare("data.train", checkpoint.training_data, corpus.train.file.get());
  compare("data.validation", checkpoint.validation_data, corpus.validation_file());
  return result;
}

} // namespace kozero
