#include "core/hash.hpp"

#include "core/error.hpp"

#include <xxhash.h>

#include <new>

namespace kozero {

struct Hash128::State {
  State() : xxh(XXH3_createState()) {
    if (!xxh) throw std::bad_alloc();
    XXH3_128bits_reset(xxh);
  }
  ~State() { XXH3_freeState(xxh); }
  State(State const&) = delete;
  State& operator=(State const&) = delete;
  XXH3_state_t* xxh;
};

std::array<unsigned char, 16> Hash128::Digest::bytes() const {
  XXH128_canonical_t canonical;
  XXH128_canonicalFromHash(&canonical, {low, high});
  return std::to_array(canonical.digest);
}

Hash128::Hash128() : state_(std::make_unique<State>()) {}
Hash128::~Hash128() = default;
Hash128::Hash128(Hash128&&) noexcept = default;
Hash128& Hash128::operator=(Hash128&&) noexcept = default;

void Hash128::update(void const* data, std::size_t bytes) {
  if (bytes > 0) XXH3_128bits_update(state_->xxh, data, bytes);
}

Hash128::Digest Hash128::digest() const {
  XXH128_hash_t const hash = XXH3_128bits_digest(state_->xxh);
  return {hash.high64, hash.low64};
}

std::string Hash128::hex() const {
  Digest const hash = digest();
  return fmt::format("{:016x}{:016x}", hash.high, hash.low);
}

Hash128::Digest Hash128::of(void const* data, std::size_t bytes) {
  XXH128_hash_t const hash = XXH3_128bits(data, bytes);
  return {hash.high64, hash.low64};
}

} // namespace kozero
