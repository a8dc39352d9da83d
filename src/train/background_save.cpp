#include "train/background_save.hpp"

#include "core/heartbeat.hpp"

#include <chrono>

namespace kozero {

BackgroundSave::BackgroundSave(std::unique_ptr<CheckpointSave> save, std::function<void()> also)
    : save_(std::move(save)), thread_([this, also = std::move(also)]() noexcept {
        // The heartbeat is the main thread's.
        save_->write([this] { parts_written_.fetch_add(1, std::memory_order_relaxed); });
        also();
        is_written_.store(true, std::memory_order_release);
      }) {}

BackgroundSave::~BackgroundSave() {
  if (thread_.joinable()) thread_.join();
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
  thread_.join();
}

} // namespace kozero
