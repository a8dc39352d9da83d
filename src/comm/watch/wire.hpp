#pragma once
// What passes between a rank and its keepers, as it lies in memory: all ranks run one program on one kind of machine.
//
//   rank ▸ keeper: Hello once, then a Report with every tick
//   keeper ▸ rank: Word::welcome once, then Word::alive with every tick

#include <cstdint>

namespace kozero::watch {

struct Hello {
  std::uint64_t token = 0; // the keeper's, so that no stranger is taken for a rank
  std::int64_t rank = 0;
};

enum class Word : std::uint8_t {
  welcome,
  alive,
  leave, // all ranks have come to their end
  end,   // the keeper ends the run, and has said why
};

} // namespace kozero::watch
