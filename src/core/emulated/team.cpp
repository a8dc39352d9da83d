#include "core/emulated/team.hpp"

#include "core/emulated/fibre.hpp"
#include "core/emulated/policy.hpp"
#include "core/error.hpp"

#include <cstring>
#include <limits>
#include <memory>
#include <vector>

namespace kozero::emulated {

namespace {

/// Unwinds a thread that waits at a barrier which can no longer be reached.
struct Abandoned {};

} // namespace

/// The team that runs, and stacks for the next one.
class TeamRunner {
public:
  void run(int size, std::int64_t scratch_bytes, void (*body)(void const*, Team const&), void const* argument) {
    KOZERO_REQUIRE(!runs_, "a team is started by a thread of a team (teams do not nest); launch it by itself");
    Running const running(*this);
    begin(size, scratch_bytes, body, argument);
    while (take_turns()) {
    }
  }

  void barrier(Team const& team) {
    threads_[static_cast<std::size_t>(team.rank_)]->fibre.pause();
    if (abandoned_) throw Abandoned();
  }

  void* scratch(Team const& team, std::int64_t bytes) {
    constexpr std::int64_t alignment = 16;
    std::int64_t const begin = (team.scratch_taken_ + alignment - 1) / alignment * alignment;
    KOZERO_REQUIRE(bytes >= 0 && begin + bytes <= scratch_bytes_,
                   "a team takes {} bytes of scratch memory (it was made with {}); ask for all in its launch",
                   begin + bytes, scratch_bytes_);
    team.scratch_taken_ = begin + bytes;
    return reinterpret_cast<char*>(scratch_.data()) + begin;
  }

  float* shared() { return shared_.data(); }

private:
  struct Thread {
    Fibre fibre;
    Team team;
  };
  struct alignas(64) Line {
    unsigned char bytes[64];
  };
  class Running {
  public:
    explicit Running(TeamRunner& runner) : runner_(runner) { runner_.runs_ = true; }
    ~Running() {
      runner_.abandon();
      runner_.runs_ = false;
    }
    Running(Running const&) = delete;
    Running& operator=(Running const&) = delete;

  private:
    TeamRunner& runner_;
  };

  void begin(int size, std::int64_t scratch_bytes, void (*body)(void const*, Team const&), void const* argument) {
    body_ = body;
    argument_ = argument;
    size_ = size;
    scratch_bytes_ = scratch_bytes;
    auto const lines = static_cast<std::size_t>(scratch_bytes + 63) / 64;
    if (scratch_.size() < lines) scratch_.resize(lines);
    if (lines > 0) std::memset(scratch_.data(), 0xff, lines * 64);
    shared_.assign(static_cast<std::size_t>(size), std::numeric_limits<float>::quiet_NaN());
    while (threads_.size() < shared_.size()) threads_.push_back(std::make_unique<Thread>());
    order_.resize(shared_.size());
    for (int rank = 0; rank < size; ++rank) {
      Thread& thread = *threads_[static_cast<std::size_t>(rank)];
      thread.team.rank_ = rank;
      thread.team.size_ = size;
      thread.team.scratch_taken_ = 0;
      thread.fibre.start([](void* team) { run_thread(*static_cast<Team const*>(team)); }, &thread.team);
    }
  }

  static void run_thread(Team const& team);

  void shuffle() {
    bool const as_they_are = policy().order == Policy::Order::immediate;
    for (int i = 0; i < size_; ++i) {
      auto const at = static_cast<std::size_t>(i);
      auto const other = as_they_are ? at : static_cast<std::size_t>(choose(i + 1));
      order_[at] = order_[other];
      order_[other] = i;
    }
  }

  /// Each thread up to its next barrier. Whether there was one.
  bool take_turns() {
    shuffle();
    int ended = 0;
    for (int const rank : order_) {
      Fibre& fibre = threads_[static_cast<std::size_t>(rank)]->fibre;
      fibre.resume();
      if (!fibre.ended()) continue;
      ++ended;
      if (fibre.error()) std::rethrow_exception(fibre.error());
    }
    KOZERO_REQUIRE(
        ended == 0 || ended == size_,
        "a barrier is not reached by all threads ({} of {} have ended); let all threads of a team come to it", ended,
        size_);
    return ended == 0;
  }

  /// Destroys what threads that have not ended hold.
  void abandon() {
    abandoned_ = true;
    for (int rank = 0; rank < size_; ++rank) {
      Fibre& fibre = threads_[static_cast<std::size_t>(rank)]->fibre;
      while (!fibre.ended()) fibre.resume();
    }
    abandoned_ = false;
  }

  bool runs_ = false;
  bool abandoned_ = false;
  int size_ = 0;
  std::int64_t scratch_bytes_ = 0;
  void (*body_)(void const*, Team const&) = nullptr;
  void const* argument_ = nullptr;
  std::vector<std::unique_ptr<Thread>> threads_;
  std::vector<int> order_;
  std::vector<Line> scratch_;
  std::vector<float> shared_;
};

namespace {

TeamRunner& runner() {
  static auto* const runner = new TeamRunner; // never destroyed: kernels may run at any time
  return *runner;
}

} // namespace

void TeamRunner::run_thread(Team const& team) {
  TeamRunner const& own = runner();
  if (own.abandoned_) return;
  try {
    own.body_(own.argument_, team);
  } catch (Abandoned const&) {
  }
}

void Team::barrier() const { runner().barrier(*this); }
void* Team::scratch(std::int64_t bytes) const { return runner().scratch(*this, bytes); }
float* Team::shared() const { return runner().shared(); }

namespace detail {

void run_team(int size, std::int64_t scratch_bytes, void (*run)(void const* body, Team const& team), void const* body) {
  KOZERO_REQUIRE(size > 0 && scratch_bytes >= 0,
                 "a team has {} threads and {} bytes of scratch memory (there is one thread at least, and no negative "
                 "memory); correct its launch",
                 size, scratch_bytes);
  runner().run(size, scratch_bytes, run, body);
}

} // namespace detail

} // namespace kozero::emulated
