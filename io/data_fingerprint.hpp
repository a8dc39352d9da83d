#pragma once
#include <cstdint>
#include <string>

namespace kozero {

class DataFile;

/// By what a data file is known again, wherever it lies and whatever it is called.
struct DataFingerprint {
  std::int64_t bytes = 0;
  std::int64_t tokens = 0;
  std::string hash; // XXH3-128 of samples, in hexadecimal
  friend bool operator==(DataFingerprint const&, DataFingerprint const&) = default;
};

/// "4000 bytes, 2000 tokens, sample hash 0123…"
std::string to_text(DataFingerprint const& fingerprint);

/// Of a file with so many tokens. A file of more than a MiB is known by 64 samples of 16 KiB, sample i at
/// i · (size - 16 KiB) / 63, rounded down, so that a file of any size costs one MiB of reading. What was cut off or put
/// in at any place shows in size or samples; a few bytes changed in place between two samples do not.
DataFingerprint fingerprint_of(DataFile const& file, std::int64_t tokens);

} // namespace kozero
