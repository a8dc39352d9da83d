#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

namespace kozero {

/// XXH3-128 of a stream of bytes, the same on every machine however the stream is cut into updates. It finds accidents
/// (a flipped bit, another result), not forgeries.
///
///     Hash128 hash;
///     hash.update(data, bytes);
///     hash.hex();   // "99aa06d3014798d86001c324468d497f" for no bytes: what `xxhsum -H2` prints
class Hash128 {
public:
  struct Digest {
    std::uint64_t high = 0;
    std::uint64_t low = 0;
    /// XXH128's canonical form, high byte first: the bytes that hex() writes.
    std::array<unsigned char, 16> bytes() const;
    friend bool operator==(Digest const&, Digest const&) = default;
  };

  Hash128();
  ~Hash128();
  Hash128(Hash128&&) noexcept;
  Hash128& operator=(Hash128&&) noexcept;

  void update(void const* data, std::size_t bytes);
  /// Of all bytes so far; more may follow.
  Digest digest() const;
  std::string hex() const;

  /// Of one piece of memory.
  static Digest of(void const* data, std::size_t bytes);

private:
  struct State;
  std::unique_ptr<State> state_;
};

} // namespace kozero
