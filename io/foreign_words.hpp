#pragma once
#include <span>
#include <string>
#include <string_view>

namespace kozero {

/// What another trainer (nanoGPT, llm.c, DeepSpeed, Megatron-LM, Hugging Face) calls a key of the deck.
struct ForeignWord {
  std::string_view word;
  std::string_view key;       // here
  std::string_view note = {}; // where it does not mean quite the same
};

std::span<ForeignWord const> foreign_words();

/// The entry of a name, whatever its case and with '-' for '_'; null: none has it.
ForeignWord const* find_foreign_word(std::string word);

} // namespace kozero
