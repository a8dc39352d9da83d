#pragma once
#include "io/checkpoint_save.hpp"

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <thread>

namespace kozero {

/// A checkpoint whose files a thread of its own writes while the run goes on. Of a process there is one at a time, and
/// nobody else uses HDF5 meanwhile: its library knows one thread.
///
///     BackgroundSave save(std::make_unique<CheckpointSave>(…),
///                         [&](auto const& gets_on) { training.prepare_snapshot_hash(gets_on); });
///     …                                                      // until save.is_written() on all ranks, say
///     save.wait();
///     save.commit([&] { return training.snapshot_hash(); }); // collective
class BackgroundSave {
public:
  using Also = std::function<void(std::function<void()> const& gets_on)>;
  /// The thread does `also` too; what that throws fails the save. Where no thread can be had, all is done here.
  BackgroundSave(std::unique_ptr<CheckpointSave> save, Also also);
  /// What is not finished is no checkpoint: the thread stops at the next part, and is waited for.
  ~BackgroundSave();
  BackgroundSave(BackgroundSave const&) = delete;
  BackgroundSave& operator=(BackgroundSave const&) = delete;

  /// This rank's files are on disk, or failed to come there.
  bool is_written() const { return is_written_.load(std::memory_order_acquire); }
  void wait();
  /// That the thread took, after wait().
  double seconds() const { return seconds_; }
  std::filesystem::path commit(std::function<std::string()> const& state_hash) { return save_->commit(state_hash); }

private:
  void work() noexcept;
  void get_on();

  std::unique_ptr<CheckpointSave> save_;
  Also also_;
  double seconds_ = 0;
  bool is_main_thread_ = false; // that works
  std::atomic<bool> is_given_up_ = false;
  std::atomic<bool> is_written_ = false;
  std::atomic<std::int64_t> parts_written_ = 0; // by which one sees that it gets on
  std::thread thread_;                          // last: it uses the rest
};

} // namespace kozero
