#include "core/hash.hpp"

#include "support/catch.hpp"

#include <fmt/format.h>

#include <string>
#include <vector>

using kozero::Hash128;

namespace {

std::string hash_of(std::string const& text) {
  Hash128 hash;
  hash.update(text.data(), text.size());
  return hash.hex();
}

std::vector<unsigned char> sample_bytes() {
  std::vector<unsigned char> bytes(100003);
  for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<unsigned char>(i * 7 + i / 256);
  return bytes;
}

constexpr char const* sample_hash = "1f54492de8a6ea06a9b717cb7935c575";

} // namespace

// The numbers are those that `xxhsum -H2` 0.8.1 prints.
TEST_CASE("a hash is XXH3-128 as xxhsum prints it") {
  CHECK(hash_of("") == "99aa06d3014798d86001c324468d497f");
  CHECK(hash_of("a") == "a96faf705af16834e6c632b61e964e1f");
  CHECK(hash_of("abc") == "06b05ab6733a618578af5f94892f3950");
}

TEST_CASE("a hash does not depend on how its stream is cut") {
  auto const bytes = sample_bytes();
  for (std::size_t const piece : {std::size_t{1}, std::size_t{63}, std::size_t{4096}, bytes.size()}) {
    Hash128 hash;
    for (std::size_t at = 0; at < bytes.size(); at += piece) {
      hash.update(bytes.data() + at, std::min(piece, bytes.size() - at));
      hash.update(nullptr, 0);
    }
    CHECK(hash.hex() == sample_hash);
    CHECK(hash.digest() == Hash128::of(bytes.data(), bytes.size()));
  }
}

TEST_CASE("the bytes of a digest are those of its hexadecimal digits") {
  std::string digits;
  for (unsigned char const byte : Hash128::of("abc", 3).bytes()) digits += fmt::format("{:02x}", byte);
  CHECK(digits == "06b05ab6733a618578af5f94892f3950");
}

TEST_CASE("asking a hash does not end its stream, and moving it keeps it") {
  Hash128 hash;
  hash.update("a", 1);
  CHECK(hash.hex() == hash_of("a"));
  Hash128 moved = std::move(hash);
  moved.update("bc", 2);
  CHECK(moved.hex() == hash_of("abc"));
}
