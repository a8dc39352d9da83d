#include "io/data_file.hpp"

#include "core/error.hpp"
#include "io/data_fingerprint.hpp"
#include "support/catch.hpp"
#include "support/temporary_folder.hpp"

#include <xxhash.h>

#include <array>
#include <string>
#include <vector>

using namespace kozero;
using namespace kozero::test;

namespace {

std::string text_at(DataFile const& file, std::int64_t offset, std::size_t bytes) {
  std::vector<std::byte> part(bytes);
  file.read(offset, part);
  return {reinterpret_cast<char const*>(part.data()), bytes};
}

std::string letters(std::size_t bytes) {
  std::string text;
  for (std::size_t i = 0; i < bytes; ++i) text += static_cast<char>('a' + (i + i / 26 + i / 700) % 26);
  return text;
}

DataFingerprint known_as(TemporaryFolder const& folder, std::string const& bytes, std::string const& name = "x") {
  return fingerprint_of(DataFile(folder.write(name, bytes)), 7);
}

} // namespace

TEST_CASE("a part of a file is what stands there") {
  TemporaryFolder const folder;
  DataFile const file(folder.write("x", "abcdefgh"));
  CHECK(file.size() == 8);
  CHECK(text_at(file, 0, 8) == "abcdefgh");
  CHECK(text_at(file, 5, 2) == "fg");
  CHECK(text_at(file, 8, 0).empty());
}

TEST_CASE("a file that shrinks while it is open is an error with file and offset") { // CASES 35
  TemporaryFolder const folder;
  std::string const path = folder.write("x", letters(10000));
  DataFile const file(path);
  std::filesystem::resize_file(path, 4000);
  CHECK(text_at(file, 3900, 100) == letters(4000).substr(3900));
  CHECK(contains(message_of<Error>([&] { text_at(file, 3900, 200); }),
                 {path, "at offset 4000 ", "had 10000 bytes", "; put it back"}));
  CHECK(contains(message_of<Error>([&] { text_at(file, 9000, 1); }), {"at offset 9000 "}));
}

TEST_CASE("a file that is removed while it is open can still be read") { // CASES 35
  TemporaryFolder const folder;
  std::string const path = folder.write("x", "abc");
  DataFile const file(path);
  std::filesystem::remove(path);
  CHECK(text_at(file, 1, 2) == "bc");
}

TEST_CASE("the message of a missing file says in which folder it was looked for") { // CASES 40
  std::string const here = std::filesystem::current_path().string();
  CHECK(contains(message_of<InputError>([] { DataFile("no such/file"); }), {"'no such/file'", "'" + here + "'"}));
  CHECK(!contains(message_of<InputError>([] { DataFile("/no such/file"); }), {here}));
}

TEST_CASE("a file is known again by its bytes, wherever it lies") { // CASES 34
  TemporaryFolder const folder;
  std::string const text = letters(5000);
  DataFingerprint const known = known_as(folder, text);
  CHECK(known.bytes == 5000);
  CHECK(known.tokens == 7);
  CHECK(known == known_as(folder, text, "y"));
  CHECK(known_as(folder, "").hash == "99aa06d3014798d86001c324468d497f"); // XXH3-128 of nothing
  for (std::size_t const place : {0, 2500, 4999}) {
    std::string other = text;
    other[place] = '!';
    CHECK(known_as(folder, other).hash != known.hash);
  }
  CHECK(known_as(folder, text.substr(1)).hash != known.hash);
}

TEST_CASE("a large file is known by the samples that the pages say") { // CASES 34
  TemporaryFolder const folder;
  constexpr std::int64_t size = (3 << 20) + 12345;
  std::string text = letters(size);
  std::string samples;
  for (std::int64_t i = 0; i < 64; ++i)
    samples += text.substr(static_cast<std::size_t>(i * (size - 16384) / 63), 16384);
  XXH128_canonical_t canonical;
  XXH128_canonicalFromHash(&canonical, XXH3_128bits(samples.data(), samples.size()));
  std::string hex;
  for (unsigned char const byte : canonical.digest) hex += fmt::format("{:02x}", byte);

  DataFingerprint const known = known_as(folder, text);
  CHECK(known.hash == hex);
  CHECK(samples.ends_with(text.substr(size - 100))); // the end is in it
  std::string cut = text.substr(0, size - 1);
  CHECK(known_as(folder, cut) != known);
  text[size - 1] = '!';
  CHECK(known_as(folder, text).hash != known.hash);
}
