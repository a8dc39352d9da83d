#pragma once
#include <string>
#include <vector>

namespace kozero {

/// "what is wrong (why); what to do", about keys of the deck.
struct Finding {
  std::vector<std::string> keys; // the first is the one to name, if all are equally to blame
  std::string text;              // to be read after the key
};

} // namespace kozero
