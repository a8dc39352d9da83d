#include "core/emulated/queue.hpp"

#include "core/emulated/policy.hpp"
#include "core/error.hpp"

#include <algorithm>
#include <cstdio>

namespace kozero::emulated {

/// All queues that live, oldest first, and the one place where their entries run.
class Scheduler {
public:
  Scheduler() { policy(); } // a wrong one is told before anything is queued

  std::int64_t add(Queue& queue) {
    queues_.push_back(&queue);
    return ++made_;
  }
  void remove(Queue& queue) { std::erase(queues_, &queue); }

  void given(Queue const& queue) {
    if (policy().order == Policy::Order::immediate) force({queue.id(), queue.given_});
    if (policy().order == Policy::Order::random) run_some();
  }

  bool ask(Point point) {
    if (!is_reached(point) && policy().order == Policy::Order::random) run_some();
    if (is_reached(point)) return true;
    if (++asked_in_vain_ < patience) return false;
    force(point);
    return true;
  }

  void run_to(Point point) {
    if (is_reached(point)) return;
    require_host_code();
    EntryRuns const batch(nullptr, nullptr); // once for all of them
    if (policy().order == Policy::Order::random) run_some();
    if (policy().order == Policy::Order::earliest) run_others(point.queue);
    force(point);
  }

  void drain_all() {
    for (auto queue = queues_.rbegin(); queue != queues_.rend(); ++queue) run_to((*queue)->here());
  }

  /// Work where nobody is left to hear of errors, until it has none, or gets no further.
  template <class Drain>
  void drain_at_the_end(Drain const& drain) noexcept {
    for (std::int64_t before = -1; before != ran_;) {
      before = ran_;
      try {
        return drain();
      } catch (std::exception const& error) {
        std::fprintf(stderr,
                     "kozero: emulated device: work failed where nobody waits for it (%s); fence its lane before the "
                     "lane or memory goes\n",
                     error.what());
      }
    }
  }

  void require_idle(Queue const& queue, char const* label) const {
    KOZERO_REQUIRE(!running_,
                   "'{}' is given to lane '{}' by '{}', which runs (only host code gives work to lanes); "
                   "give it before or after",
                   label, queue.name(), running_);
  }

private:
  void require_host_code() const {
    KOZERO_REQUIRE(!running_,
                   "'{}' waits for work of a lane while it runs (only host code waits); wait before it is "
                   "given, or let its lane wait for an event",
                   running_);
  }

  static constexpr int patience = 1000; // questions in a row, with nothing run meanwhile

  Queue* find(std::int64_t id) const {
    auto const found = std::lower_bound(queues_.begin(), queues_.end(), id,
                                        [](Queue const* queue, std::int64_t wanted) { return queue->id() < wanted; });
    return found != queues_.end() && (*found)->id() == id ? *found : nullptr;
  }

  /// A queue that is gone was drained.
  bool is_reached(Point point) const {
    Queue const* const queue = find(point.queue);
    return !queue || queue->done_ >= point.count;
  }

  /// The first that the queue's next entry waits for, or null.
  Point const* wait_of(Queue const& queue) const {
    for (Point const& point : queue.items_.front().after) {
      if (!is_reached(point)) return &point;
    }
    return nullptr;
  }
  bool may_run(Queue const& queue) const { return !queue.items_.empty() && !wait_of(queue); }

  void run_next(Queue& queue) {
    Queue::Item item = std::move(queue.items_.front());
    queue.items_.pop_front();
    ++queue.done_; // an entry that throws has had its turn
    ++ran_;
    asked_in_vain_ = 0;
    EntryRuns const runs(item.label, queue.name().c_str(), item.entry.reach());
    struct Busy {
      char const*& label;
      ~Busy() { label = nullptr; }
    } const busy{running_ = item.label};
    item.entry.run();
  }

  /// Events lead back in time, so there is always an entry that may run.
  void force(Point demanded) {
    if (is_reached(demanded)) return;
    require_host_code();
    EntryRuns const batch(nullptr, nullptr);
    std::vector<Point> needed{demanded};
    while (!needed.empty()) {
      if (is_reached(needed.back())) {
        needed.pop_back();
      } else if (Queue& queue = *find(needed.back().queue); Point const* const before = wait_of(queue)) {
        needed.push_back(*before);
      } else {
        run_next(queue);
      }
    }
  }

  /// Mostly nothing, so that queues grow long at times.
  void run_some() {
    if (running_ || choose(4) > 0) return;
    EntryRuns const batch(nullptr, nullptr);
    for (std::int64_t left = choose(6); left > 0; --left) {
      std::vector<Queue*> ready;
      std::copy_if(queues_.begin(), queues_.end(), std::back_inserter(ready),
                   [this](Queue const* queue) { return may_run(*queue); });
      if (ready.empty()) return;
      run_next(*ready[static_cast<std::size_t>(choose(static_cast<std::int64_t>(ready.size())))]);
    }
  }

  void run_others(std::int64_t demanded) {
    for (bool found = true; found;) {
      found = false;
      for (auto queue = queues_.rbegin(); queue != queues_.rend(); ++queue) {
        if ((*queue)->id() == demanded) continue;
        while (may_run(**queue)) {
          run_next(**queue);
          found = true;
        }
      }
    }
  }

  std::vector<Queue*> queues_;
  std::int64_t made_ = 0;
  std::int64_t ran_ = 0; // entries, of all queues
  int asked_in_vain_ = 0;
  char const* running_ = nullptr;
};

namespace {

Scheduler* the_scheduler = nullptr; // never destroyed: lanes may be static

Scheduler& scheduler() {
  if (!the_scheduler) the_scheduler = new Scheduler;
  return *the_scheduler;
}

} // namespace

Queue::Queue(std::string name) : name_(std::move(name)), id_(scheduler().add(*this)) {}

Queue::~Queue() {
  scheduler().drain_at_the_end([this] { drain(); });
  scheduler().remove(*this);
}

void Queue::push(char const* label, Entry entry) {
  scheduler().require_idle(*this, label);
  items_.push_back({label, std::move(entry), std::exchange(held_back_, {})});
  ++given_;
  scheduler().given(*this);
}

Point Queue::here() {
  if (!held_back_.empty()) push("wait for an event", Entry([] {}));
  return {id_, given_};
}

void Queue::hold_back(Point point) { held_back_.push_back(point); }

void Queue::drain() { run_to(here()); }

bool reached(Point point) { return scheduler().ask(point); }
void run_to(Point point) { scheduler().run_to(point); }
void drain_all() { scheduler().drain_all(); }
void drain_at_the_end() noexcept {
  if (the_scheduler) the_scheduler->drain_at_the_end(drain_all);
}

} // namespace kozero::emulated
