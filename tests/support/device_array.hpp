#pragma once
// Memory of a device as tests have it: they fill and read it by copies alone, as host code must not touch it.

#include "core/launch.hpp"
#include "core/ledger.hpp"
#include "core/views.hpp"

#include <cstdint>
#include <type_traits>
#include <variant>
#include <vector>

namespace kozero::test {

/// For memory that is no subject of a test.
inline Ledger& ledger_of_tests() {
  static Ledger ledger;
  return ledger;
}

/// What is in any memory once all work that the default lane was given has run.
template <class T>
std::vector<T> read_values(Site from, std::int64_t count) {
  std::vector<T> values(static_cast<std::size_t>(count));
  copy_bytes(Lane(), {values.data(), Space::host}, from, count * static_cast<std::int64_t>(sizeof(T)));
  return values;
}
template <class T>
void write_values(Site to, std::vector<T> const& values) {
  copy_bytes(Lane(), to, {values.data(), Space::host}, std::ssize(values) * static_cast<std::int64_t>(sizeof(T)));
}

template <class T>
std::vector<std::remove_const_t<T>> to_host(T* device, std::int64_t count) {
  return read_values<std::remove_const_t<T>>({device, Space::device}, count);
}
template <class T>
std::vector<std::remove_const_t<T>> to_host(Vec<T> const& device) {
  return to_host(device.data(), device.size());
}

/// Of a piece of state, a StateEntry or a HeldState, wherever it is.
template <class T = float, class Piece>
std::vector<T> values_of(Piece const& piece) {
  return read_values<T>({piece.data, piece.space}, piece.interval.size());
}
template <class T, class Piece>
void set_values(Piece const& piece, std::vector<T> const& values) {
  KOZERO_ASSERT(std::ssize(values) == piece.interval.size());
  write_values({piece.data, piece.space}, values);
}

/// Owns bytes of any memory.
class AnyMemory {
public:
  AnyMemory(Space space, std::int64_t bytes) {
    if (space == Space::device) make<DeviceMemory>(bytes);
    if (space == Space::pinned) make<PinnedMemory>(bytes);
    if (space == Space::host) make<HostMemory>(bytes);
  }
  void* data() const {
    return std::visit([](auto const& buffer) -> void* { return buffer.data(); }, buffer_);
  }

private:
  template <class Memory>
  using Bytes = Buffer<unsigned char, Memory>;
  template <class Memory>
  void make(std::int64_t bytes) {
    buffer_ = Bytes<Memory>(ledger_of_tests(), Category::workspace, "of a test", bytes);
  }
  std::variant<Bytes<DeviceMemory>, Bytes<PinnedMemory>, Bytes<HostMemory>> buffer_;
};

/// Owns elements in device memory, zero at first.
///
///     DeviceArray const x(std::vector<float>{1, 2, 3});
///     DeviceArray<float> const y(3);
///     kernel(Lane(), y, x);          // as Vec<float>
///     CHECK(y.get() == …);
template <class T>
class DeviceArray {
public:
  explicit DeviceArray(std::int64_t size) : buffer_(ledger_of_tests(), Category::workspace, "of a test", size) {}
  explicit DeviceArray(std::vector<T> const& values) : DeviceArray(std::ssize(values)) { set(values); }

  void set(std::vector<T> const& values) const {
    KOZERO_ASSERT(std::ssize(values) == size());
    write_values({data(), Space::device}, values);
  }
  std::vector<T> get() const { return to_host(view()); }

  std::int64_t size() const { return buffer_.size(); }
  T* data() const { return buffer_.data(); }
  Vec<T> view() const { return make_vec(data(), size()); }
  operator Vec<T>() const { return view(); }
  operator Vec<T const>() const { return view(); }

private:
  DeviceBuffer<T> buffer_;
};

} // namespace kozero::test
