#include "comm/agree.hpp"

#include "comm/survey.hpp"

#include <algorithm>

namespace kozero {

void share_failure(Ranks& ranks, Failure failure) {
  auto const codes = ranks.gather(failure.exit_code);
  auto const failed = [](auto code) { return code != exit_done && code != Failure::not_tried; };
  auto const first = std::ranges::find_if(codes, failed);
  if (first == codes.end()) return;
  auto const rank = static_cast<int>(first - codes.begin());
  bool const some_passed = std::ranges::find(codes, exit_done) != codes.end();
  if (some_passed) failure.words = fmt::format("rank {} on host {}: {}", rank, host_name(), failure.words);
  ranks.broadcast(failure.words, rank);
  throw SharedError(failure.words, static_cast<int>(*first));
}

} // namespace kozero
