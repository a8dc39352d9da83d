#pragma once
#include <atomic>
#include <chrono>
#include <cstdint>

namespace kozero {

/// What a second thread can see of this process' main thread: whether it gets on, which collective it has reached, and
/// how long its batches took without the waiting for messages. The main thread writes, an addition or two at a time;
/// any thread reads.
///
///     heartbeat().beat();                                // a kernel was given to a lane, a piece of a file was
///     written heartbeat().reach("all_gather", "parameters");     // and its number is one more than that of the one
///     before { Heartbeat::Wait const wait; … }                  // for messages { Heartbeat::Batch batch; …;
///     batch.done(); }
class Heartbeat {
public:
  /// Some work was done. Does not count within a Wait, where nothing gets on but by arrive().
  void beat() {
    if (!waits()) add(beats_, 1);
  }
  /// Messages have come or left.
  void arrive() { add(beats_, 1); }
  /// A collective begins here: of all ranks, which count them alike. The texts must stay for good.
  void reach(char const* what, char const* of = "");

  bool waits() const { return waits_.load(std::memory_order_relaxed); }

  class Wait {
  public:
    Wait();
    ~Wait();
    Wait(Wait const&) = delete;
    Wait& operator=(Wait const&) = delete;

  private:
    bool const is_within_another_;
    std::chrono::steady_clock::time_point begin_ = std::chrono::steady_clock::now();
  };
  class Batch {
  public:
    Batch();
    void done() const;

  private:
    std::chrono::steady_clock::time_point begin_ = std::chrono::steady_clock::now();
    std::int64_t waited_ns_;
  };

  struct Reading {
    std::int64_t beats = 0;
    std::int64_t collectives = 0; // reached
    char const* what = "";        // the last one
    char const* of = "";
    bool waits = false;
    std::int64_t batches = 0;
    std::int64_t busy_ns = 0; // of those batches, without waits
  };
  /// Parts of it may be older than others by a moment.
  Reading read() const;

private:
  // There is one writer.
  static void add(std::atomic<std::int64_t>& count, std::int64_t n) {
    count.store(count.load(std::memory_order_relaxed) + n, std::memory_order_relaxed);
  }

  std::atomic<std::int64_t> beats_ = 0;
  std::atomic<std::int64_t> collectives_ = 0;
  std::atomic<char const*> what_ = "";
  std::atomic<char const*> of_ = "";
  std::atomic<bool> waits_ = false;
  std::atomic<std::int64_t> waited_ns_ = 0;
  std::atomic<std::int64_t> batches_ = 0;
  std::atomic<std::int64_t> busy_ns_ = 0;
};

/// Of this process.
Heartbeat& heartbeat();

} // namespace kozero
