#pragma once
#include "core/ledger.hpp"

#include <variant>

namespace kozero {

/// A buffer in a memory that is chosen at run time, or memory that another object owns.
template <class T>
class PlacedBuffer {
public:
  PlacedBuffer() = default;
  PlacedBuffer(Space space, Ledger& ledger, Category category, std::string const& label, std::int64_t count) {
    switch (space) {
    case Space::device: memory_ = DeviceBuffer<T>(ledger, category, label, count, DeviceBuffer<T>::Init::none); break;
    case Space::pinned: memory_ = PinnedBuffer<T>(ledger, category, label, count, PinnedBuffer<T>::Init::none); break;
    case Space::host: memory_ = HostBuffer<T>(ledger, category, label, count, HostBuffer<T>::Init::none); break;
    }
  }
  /// In no ledger's account: its owner's entry counts. It must outlive this.
  static PlacedBuffer borrowed(T* data) {
    PlacedBuffer buffer;
    buffer.memory_ = Borrowed{data};
    return buffer;
  }
  T* data() const {
    return std::visit([](auto const& buffer) { return buffer.data(); }, memory_);
  }

private:
  struct Borrowed {
    T* memory = nullptr;
    T* data() const { return memory; }
  };
  std::variant<DeviceBuffer<T>, PinnedBuffer<T>, HostBuffer<T>, Borrowed> memory_;
};

} // namespace kozero
