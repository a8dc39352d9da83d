// Decks: read or refused in words. What is read can be printed, and reads back as the same.
#include "fuzz/scratch.hpp"

#include "core/error.hpp"
#include "io/deck.hpp"
#include "model/families.hpp"

#include <cstdlib>
#include <string>
#include <string_view>

using namespace kozero;

namespace {

/// Behind a NUL stands an override.
void try_deck(std::string_view input) {
  auto const nul = input.find('\0');
  std::string_view const text = input.substr(0, nul);
  std::vector<std::string> overrides;
  if (nul != std::string_view::npos) overrides.emplace_back(input.substr(nul + 1));
  Deck const deck = read_deck(text, "deck", overrides);
  if (read_deck(deck.resolved_yaml, "again").config != deck.config) std::abort();
  if (read_stored_deck(deck.resolved_yaml, 2).config != deck.config) std::abort();
}

} // namespace

extern "C" int LLVMFuzzerInitialize(int*, char***) {
  register_model_families();
  return 0;
}

extern "C" int LLVMFuzzerTestOneInput(unsigned char const* data, std::size_t size) {
  std::string_view const input = fuzz::text_of(data, size);
  fuzz::refused([&] { try_deck(input); });
  fuzz::refused([&] { read_stored_deck(input, 1); });
  return 0;
}
