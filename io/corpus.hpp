#pragma once
// From the deck's data section to windows: what a run trains on, and what it evaluates on.

#include "io/token_file.hpp"
#include "layout/partition.hpp"

#include <algorithm>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace kozero {

/// Windows of T = `context` inputs in `tokens` tokens. They do not overlap; the target of an input is the next token,
/// so the last target of a window is the first input of the next, and the last window needs one token more.
constexpr std::int64_t windows(std::int64_t tokens, std::int64_t context) {
  return std::max<std::int64_t>(0, tokens - 1) / context;
}

/// A part of a token file, cut into windows.
struct TokenSet {
  std::shared_ptr<TokenFile const> file; // null: there is no such part
  Interval tokens;                       // of the file
  std::int64_t windows = 0;

  /// Of the T + 1 tokens of a window in [0, windows) the first T and the last T, where T is the context of this set.
  void read_window(std::int64_t window, std::span<std::int32_t> inputs, std::span<std::int32_t> targets) const;
};

struct Corpus {
  TokenSet train;
  TokenSet validation; // no windows when data.validation is 0: no evaluation

  /// Where validation has a file of its own; else null.
  TokenFile const* validation_file() const { return validation.file == train.file ? nullptr : validation.file.get(); }
  /// Of its files.
  std::vector<std::string> doubts() const;
};

/// Opens the files. `data.validation` is the name of a file, or the fraction of the training file's windows, at its
/// end, that are held out: rounded to whole windows, at least one on each side; no validation target is a training
/// target. A name that reads as a number needs a folder: "./0.5". InputError when a part has not one window.
Corpus open_corpus(DataConfig const& data, std::int64_t vocabulary, std::int64_t context);

} // namespace kozero
