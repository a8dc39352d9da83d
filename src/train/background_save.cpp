#include "train/background_save.hpp"

#include "core/error.hpp"
#include "core/heartbeat.hpp"
#include "core/processors.hpp"
#include "core/quiet_thread.hpp"

#include <chrono>
#include <exception>

namespace kozero {

BackgroundSave::BackgroundSave(std::unique_ptr<CheckpointSave> save, Also also)
    : save_(std::move(save)), also_(std::move(also)) {
  try {
    thread_ = start_quiet_thread([this] {
      run_on_all_processors();
      work();
    });
  } catch (std::exception const&) { // the other ranks have theirs
    is_main_thread_ = true;
    work();
  }
}

BackgroundSave::~BackgroundSave() {
  is_given_up_.store(true, std::memory_order_relaxed);
  if (thread_.joinable()) wait();
}

void BackgroundSave::work() noexcept {
  auto const start = std::chrono::steady_clock::now();
  std::function<void()> const gets_on = [this] { get_on(); };
  save_->write(gets_on, [&] { also_(gets_on); });
  seconds_ = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  is_written_.store(true, std::memory_order_release);
}

// The heartbeat is the main thread's.
void BackgroundSave::get_on() {
  parts_written_.fetch_add(1, std::memory_order_relaxed);
  if (is_main_thread_) heartbeat().beat();
  KOZERO_REQUIRE(!is_given_up_.load(std::memory_order_relaxed), "the save is given up (the run has ended); resume it");
}

/// That the thread gets on is the main thread's work while it waits for it.
void BackgroundSave::wait() {
  std::int64_t seen = -1;
  while (!is_written()) {
    if (std::int64_t const now = parts_written_.load(std::memory_order_relaxed); now != seen) {
      seen = now;
      heartbeat().beat();
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
  if (thread_.joinable()) thread_.join();
}

} // namespace kozero
