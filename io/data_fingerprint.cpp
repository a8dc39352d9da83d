#include "io/data_fingerprint.hpp"

#include "core/hash.hpp"
#include "io/data_file.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

namespace kozero {

std::string to_text(DataFingerprint const& fingerprint) {
  return fmt::format("{} bytes, {} tokens, sample hash {}", fingerprint.bytes, fingerprint.tokens, fingerprint.hash);
}

DataFingerprint fingerprint_of(DataFile const& file, std::int64_t tokens) {
  constexpr std::int64_t samples = 64;
  constexpr std::int64_t sample_bytes = 16 << 10;
  std::vector<std::byte> sample(sample_bytes);
  Hash128 hash;
  auto const take = [&](std::int64_t offset, std::int64_t bytes) {
    auto const part = std::span(sample).first(static_cast<std::size_t>(bytes));
    file.read(offset, part);
    hash.update(part.data(), part.size());
  };
  if (file.size() <= samples * sample_bytes) {
    for (std::int64_t at = 0; at < file.size(); at += sample_bytes) take(at, std::min(sample_bytes, file.size() - at));
  } else {
    std::int64_t const last = file.size() - sample_bytes;
    for (std::int64_t i = 0; i < samples; ++i) { // i · last / 63, without that product
      take(last / (samples - 1) * i + last % (samples - 1) * i / (samples - 1), sample_bytes);
    }
  }
  return {file.size(), tokens, hash.hex()};
}

} // namespace kozero
