#pragma once
#include "comm/ranks.hpp"
#include "core/error.hpp"

#include <optional>
#include <string>
#include <utility>

namespace kozero {

/// Runs `work` on all ranks; when it throws on some, every rank throws the first one's error, so that none goes on
/// alone and one message is enough. Collective; `work` itself must make no collective call.
template <class Work>
auto on_all_ranks(Ranks& ranks, Work const& work) {
  std::string failure;
  int exit_code = exit_done;
  auto result = [&]() -> std::optional<decltype(work())> {
    try {
      return work();
    } catch (Error const& error) {
      failure = error.what();
      exit_code = error.exit_code();
    } catch (std::exception const& error) {
      failure = error.what();
      exit_code = exit_failed;
    }
    return std::nullopt;
  }();
  auto const codes = ranks.gather(exit_code);
  for (int rank = 0; rank < ranks.size(); ++rank) {
    if (codes[rank] == exit_done) continue;
    ranks.broadcast(failure, rank);
    throw SharedError(failure, static_cast<int>(codes[rank]));
  }
  return std::move(*result);
}

} // namespace kozero
