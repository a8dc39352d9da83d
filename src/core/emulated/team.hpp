#pragma once
// Teams of an accelerator's threads, on a CPU: each thread is a fibre, and they take turns at barriers only, in an
// order that the policy decides. So a barrier that is missing shows, always in the same way.

#include <cstdint>

namespace kozero::emulated {

/// Threads of a team where nobody asks for a number. It divides no power of two, so that threads do not come back to
/// the columns of a tile that they have written themselves, which needs no barrier.
inline constexpr int default_team_size = 5;

/// One thread of a team. What it refers to is the thread's own, but for scratch() and shared().
class Team {
public:
  int rank() const { return rank_; }
  int size() const { return size_; }
  /// Goes on when all threads have come here. All of them must, as often as each other.
  void barrier() const;
  /// The next piece of the team's memory, aligned to 16 bytes and full of NaN at first. Threads that ask in the same
  /// order get the same pieces. Error beyond the bytes that the team was made with.
  void* scratch(std::int64_t bytes) const;
  /// size() elements for what threads tell each other, NaN at first.
  float* shared() const;

private:
  friend class TeamRunner;
  int rank_ = 0;
  int size_ = 0;
  mutable std::int64_t scratch_taken_ = 0;
};

namespace detail {
void run_team(int size, std::int64_t scratch_bytes, void (*run)(void const* body, Team const& team), void const* body);
} // namespace detail

/// Runs body(team) for each of `size` threads. Throws what the first of them throws, and Error where some are at a
/// barrier and others have ended. A team cannot run another one.
///
///     run_team(default_team_size, 0, [&](Team const& team) {
///       team.shared()[team.rank()] = part;
///       team.barrier();
///       …
///     });
template <class Body>
void run_team(int size, std::int64_t scratch_bytes, Body const& body) {
  detail::run_team(
      size, scratch_bytes, [](void const* of, Team const& team) { (*static_cast<Body const*>(of))(team); }, &body);
}

} // namespace kozero::emulated
