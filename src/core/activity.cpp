#include "core/activity.hpp"

#include "core/error.hpp"

#include <string_view>

namespace kozero {

void Activity::count_fence(char const* why) {
  for (int i = 0; i < names_; ++i) {
    if (std::string_view(fences_[i].why) == why) {
      ++fences_[i].count;
      return;
    }
  }
  KOZERO_ASSERT(names_ < static_cast<int>(fences_.size()));
  fences_[names_++] = {why, 1};
}

Activity& activity() {
  static Activity all;
  return all;
}

} // namespace kozero
