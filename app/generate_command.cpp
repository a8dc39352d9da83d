#include "app/commands.hpp"

#include "core/error.hpp"
#include "infer/generate.hpp"
#include "io/checkpoint.hpp"
#include "io/deck.hpp"

#include <cstdio>

namespace kozero {

namespace {

std::vector<std::int32_t> prompt_of(GenerateArguments const& arguments, bool text) {
  if (!arguments.prompt_tokens.empty()) return arguments.prompt_tokens;
  if (!text) {
    throw InputError(
        "the model's tokens are no bytes of text (it was trained on token ids), so --prompt means nothing to it; give "
        "ids with --prompt-tokens");
  }
  std::vector<std::int32_t> tokens;
  for (unsigned char const byte : arguments.prompt) tokens.push_back(byte);
  return tokens;
}

} // namespace

int run_generate(GenerateArguments const& arguments) {
  Ledger ledger;
  CheckpointReader const checkpoint(resolve_checkpoint(arguments.checkpoint));
  Config const config = read_stored_deck(checkpoint.info().deck, checkpoint.info().format_version).config;
  bool const text = checkpoint.info().text;
  auto const prompt = prompt_of(arguments, text);
  auto const write = [text](std::int32_t token) {
    if (text && token < 256) {
      std::fputc(token, stdout);
    } else if (text) { // no byte
      std::printf("<%d>", token);
    } else {
      std::printf("%d ", token);
    }
    std::fflush(stdout);
  };
  for (std::int32_t const token : prompt) write(token);
  generate(checkpoint, config, prompt, {arguments.tokens, arguments.temperature, arguments.top_k, arguments.seed},
           write, ledger);
  std::fputc('\n', stdout);
  return exit_done;
}

} // namespace kozero
