#include "io/corpus.hpp"

#include "config/check.hpp"
#include "core/error.hpp"

#include <cmath>
#include <iterator>
#include <optional>

namespace kozero {

namespace {

void require_tokens(TokenFile const& file, std::int64_t needed, std::string const& why) {
  if (file.size() >= needed) return;
  throw InputError(fmt::format("'{}' has {} tokens, needs {} ({}; read as {}); use a longer file or a smaller "
                               "model.context",
                               file.path(), file.size(), needed, why, file.description()));
}

TokenSet token_set(std::shared_ptr<TokenFile const> file, Interval tokens, std::int64_t context) {
  return {std::move(file), tokens, windows(tokens.size(), context)};
}

TokenSet whole_file(std::shared_ptr<TokenFile const> file, std::int64_t context) {
  require_tokens(*file, context + 1, fmt::format("model.context = {} and one target more", context));
  Interval const tokens{0, file->size()};
  return token_set(std::move(file), tokens, context);
}

Corpus split(std::shared_ptr<TokenFile const> const& file, double fraction, std::int64_t context) {
  require_tokens(
      *file, 2 * context + 1,
      fmt::format("one window of model.context = {} to train on, one to validate, and one target more", context));
  std::int64_t const all = windows(file->size(), context);
  auto const wanted = static_cast<std::int64_t>(std::llround(fraction * static_cast<double>(all)));
  std::int64_t const held_out = std::clamp<std::int64_t>(wanted, 1, all - 1);
  // The token at the cut is the last target of the one part and the first input of the other.
  std::int64_t const cut = (all - held_out) * context;
  return {token_set(file, {0, cut + 1}, context), token_set(file, {cut, file->size()}, context)};
}

} // namespace

void TokenSet::read_window(std::int64_t window, std::span<std::int32_t> inputs, std::span<std::int32_t> targets) const {
  KOZERO_ASSERT(window >= 0 && window < windows && inputs.size() == targets.size());
  std::int64_t const first = tokens.begin + window * std::ssize(inputs);
  file->read(first, inputs);
  file->read(first + 1, targets);
}

std::vector<std::string> Corpus::doubts() const {
  std::vector<std::string> lines = train.file->doubts();
  if (auto const* const file = validation_file()) std::ranges::move(file->doubts(), std::back_inserter(lines));
  return lines;
}

Corpus open_corpus(DataConfig const& data, std::int64_t vocabulary, std::int64_t context) {
  auto const open = [&](std::string const& path) {
    return std::make_shared<TokenFile const>(path, data.format, vocabulary);
  };
  std::optional<double> const fraction = validation_fraction(data);
  if (!fraction) return {whole_file(open(data.train), context), whole_file(open(data.validation), context)};
  if (!(*fraction >= 0 && *fraction < 1)) {
    throw InputError(
        fmt::format("data.validation is {} (a fraction of the training file is in [0, 1)); set a fraction, "
                    "0 for no validation, or the name of a file",
                    data.validation));
  }
  if (*fraction == 0) return {whole_file(open(data.train), context), {}};
  return split(open(data.train), *fraction, context);
}

} // namespace kozero
