#pragma once
#include "comm/ranks.hpp"
#include "core/error.hpp"

#include <optional>
#include <string>
#include <utility>

namespace kozero {

/// Why work failed on a rank; exit_done where it did not.
struct Failure {
  static constexpr int not_tried = -1;
  std::string words = {};
  int exit_code = exit_done;
};

/// Runs `work`; what it threw.
template <class Work>
Failure failure_of(Work const& work) {
  try {
    work();
    return {};
  } catch (Error const& error) {
    return {error.what(), error.exit_code()};
  } catch (std::exception const& error) {
    return {error.what(), exit_failed};
  }
}

/// Where some ranks failed, every rank throws what the first of them says, and which one that is unless all that tried
/// failed. Collective.
void share_failure(Ranks& ranks, Failure failure);

/// Runs `work` on all ranks; when it throws on some, every rank throws the first one's error, so that none goes on
/// alone and one message is enough. Collective; `work` itself must make no collective call.
template <class Work>
auto on_all_ranks(Ranks& ranks, Work const& work) {
  std::optional<decltype(work())> result;
  share_failure(ranks, failure_of([&] { result.emplace(work()); }));
  return std::move(*result);
}

/// Runs `work` on rank 0 alone, whose result the others have as a value of the type without content; when it throws,
/// every rank does. Collective, as above.
template <class Work>
auto on_first_rank(Ranks& ranks, Work const& work) {
  using Result = decltype(work());
  if (ranks.rank() == 0) return on_all_ranks(ranks, work);
  share_failure(ranks, {.exit_code = Failure::not_tried});
  return Result();
}

} // namespace kozero
