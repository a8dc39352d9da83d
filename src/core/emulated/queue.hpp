#pragma once
// Lanes of the emulated device: queues of work that runs when the policy says so, or when somebody needs it.

#include "core/emulated/arena.hpp"

#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace kozero::emulated {

/// What a queue runs once, with its reach: host memory is closed but to a copy of it. A closure that can be moved; what
/// it holds lives until it has run.
class Entry {
public:
  template <class F>
  explicit Entry(F f, Reach reach = Reach::device) : reach_(reach), work_(std::make_unique<WorkOf<F>>(std::move(f))) {}
  Reach reach() const { return reach_; }
  void run() { work_->run(); }

private:
  struct Work {
    virtual ~Work() = default;
    virtual void run() = 0;
  };
  template <class F>
  struct WorkOf final : Work {
    explicit WorkOf(F f) : work(std::move(f)) {}
    void run() override { work(); }
    F work;
  };
  Reach reach_;
  std::unique_ptr<Work> work_;
};

/// A place in the order of a queue: after its first `count` entries. The default is reached from the start.
struct Point {
  std::int64_t queue = 0;
  std::int64_t count = 0;
};

/// The work of one lane, in the order in which it was given.
///
///     Queue queue("main");
///     queue.push("kozero::fill", Entry([=] { … }));
///     Point const filled = queue.here();
///     other.hold_back(filled);   // what `other` gets from now on runs after the fill
///     run_to(filled);            // it has run; an exception of an entry comes out here
///
/// An entry cannot give work to queues nor force it.
class Queue {
public:
  /// InputError where KOZERO_EMULATED_POLICY is none.
  explicit Queue(std::string name);
  ~Queue(); // drains it, as drain_at_the_end()
  Queue(Queue const&) = delete;
  Queue& operator=(Queue const&) = delete;

  std::int64_t id() const { return id_; } // from 1, in the order of their making
  std::string const& name() const { return name_; }

  /// `label` is kept, not copied. Under some policies it runs at once.
  void push(char const* label, Entry entry);
  /// After all that was pushed, and after what it has been held back for.
  Point here();
  /// What is pushed from now on waits until `point` is reached.
  void hold_back(Point point);
  void drain();
  bool empty() const { return items_.empty(); }

private:
  friend class Scheduler;
  struct Item {
    char const* label;
    Entry entry;
    std::vector<Point> after;
  };
  std::string name_;
  std::int64_t id_;
  std::int64_t given_ = 0;
  std::int64_t done_ = 0;
  std::vector<Point> held_back_;
  std::deque<Item> items_;
};

/// Asks, and forces nothing; but somebody who asks forever in vain is served, as a device gets on by itself. Under
/// policy random, entries may run first.
bool reached(Point point);
/// Runs what the point needs: the entries before it, and those that they wait for.
void run_to(Point point);
/// Runs everything, as cudaDeviceSynchronize, or cudaFree before it frees.
void drain_all();
/// The same where nobody is left to hear of errors: they are printed, and the rest runs.
void drain_at_the_end() noexcept;

} // namespace kozero::emulated
