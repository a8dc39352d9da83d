// Token files: opened or refused in words; what is opened reads as ids below the vocabulary, window by window.
#include "fuzz/scratch.hpp"

#include "io/corpus.hpp"

#include <cstdlib>
#include <string>
#include <vector>

using namespace kozero;

namespace {

void read_all(TokenSet const& set, std::int64_t context, std::int64_t vocabulary) {
  std::vector<std::int32_t> inputs(static_cast<std::size_t>(context)), targets(static_cast<std::size_t>(context));
  for (std::int64_t window = 0; window < set.windows; ++window) {
    set.read_window(window, inputs, targets);
    for (std::int32_t const id : inputs) {
      if (id < 0 || id >= vocabulary) std::abort();
    }
  }
}

} // namespace

/// The first byte says how the rest is read.
extern "C" int LLVMFuzzerTestOneInput(unsigned char const* data, std::size_t size) {
  if (size == 0) return 0;
  constexpr std::int64_t vocabularies[] = {256, 50257, 70000, 2147483647};
  auto const format = static_cast<DataFormat>(data[0] % 5);
  std::int64_t const vocabulary = vocabularies[data[0] / 5 % 4];
  std::int64_t const context = 1 + data[0] / 20;
  std::string const path = fuzz::write(data[0] % 2 == 0 ? "x.bin" : "x", fuzz::text_of(data + 1, size - 1));
  fuzz::refused([&] {
    Corpus const corpus = open_corpus({path, "0.1", format}, vocabulary, context);
    for (auto const& doubt : corpus.doubts()) {
      if (doubt.find(path) == std::string::npos) std::abort();
    }
    read_all(corpus.train, context, vocabulary);
    read_all(corpus.validation, context, vocabulary);
  });
  return 0;
}
