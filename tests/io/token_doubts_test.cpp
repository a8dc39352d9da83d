// Files that can be read, but probably are not what they are read as.
#include "io/token_doubts.hpp"

#include "io/token_file.hpp"
#include "support/catch.hpp"
#include "support/temporary_folder.hpp"

#include <fmt/ranges.h>

#include <cstdint>

using namespace kozero;
using namespace kozero::test;

namespace {

/// Some ids of a tokenizer, as integers of `width` bytes.
std::string ids_of(int width, std::size_t count, std::int64_t vocabulary = 50257, bool big_endian = false) {
  std::string bytes;
  for (std::size_t i = 0; i < count; ++i) {
    auto const id = static_cast<std::uint64_t>(i * i * 7919 + 13 * i) % static_cast<std::uint64_t>(vocabulary);
    for (int b = 0; b < width; ++b) bytes += static_cast<char>(id >> (8 * (big_endian ? width - 1 - b : b)) & 0xff);
  }
  return bytes;
}

std::string doubts(std::string const& bytes, DataFormat format, std::int64_t vocabulary) {
  TemporaryFolder const folder;
  return fmt::format("{}", fmt::join(TokenFile(folder.write("x.bin", bytes), format, vocabulary).doubts(), "\n"));
}

} // namespace

TEST_CASE("ids read as they were written raise no doubt") {
  for (std::size_t const count : {0, 1, 2, 7, 5000, 70001}) {
    INFO(count);
    CHECK(doubts(ids_of(2, count), DataFormat::automatic, 50257).empty());
    CHECK(doubts(ids_of(4, count, 128256), DataFormat::automatic, 128256).empty());
    CHECK(doubts(ids_of(2, count, 97), DataFormat::uint16, 97).empty());
    CHECK(doubts(ids_of(1, count, 128), DataFormat::text, 257).empty());
  }
}

TEST_CASE("ids of another width are doubted") { // CASES 38
  for (std::size_t const count : {100, 70001}) {
    INFO(count);
    CHECK(contains(doubts(ids_of(4, count), DataFormat::automatic, 50257),
                   {"x.bin", "uint16", "every second id is 0", "4 bytes, read as 2", "uint32"}));
    CHECK(contains(doubts(ids_of(8, count), DataFormat::automatic, 50257), {"uint16", "8 bytes"}));
    CHECK(contains(doubts(ids_of(8, count), DataFormat::uint32, 50257), {"uint32", "8 bytes", "; write them"}));
    CHECK(contains(doubts(ids_of(4, count, 200, true), DataFormat::uint16, 65536), {"every second id is 0", "order"}));
    CHECK(contains(doubts(ids_of(2, count, 128), DataFormat::text, 256), {"text", "% of", "are 0"}));
  }
}

TEST_CASE("files of zeros are doubted") {
  CHECK(contains(doubts(std::string(4000, '\0'), DataFormat::uint16, 50257), {"all ids", "never filled"}));
  CHECK(contains(doubts(ids_of(2, 500) + std::string(3000, '\0'), DataFormat::uint16, 50257),
                 {"% of the ids", "padding"}));
}

TEST_CASE("a vocabulary above 65536 never is uint16") { // CASES 38
  TemporaryFolder const folder;
  std::string const path = folder.write("x.bin", ids_of(4, 1000, 70000));
  TokenFile const file(path, DataFormat::automatic, 70000);
  CHECK(file.size() == 1000);
  CHECK(contains(file.description(), {"uint32", "above 65536"}));
  CHECK(TokenFile(path, DataFormat::automatic, 65536).size() == 2000);
  CHECK(contains(message_of<InputError>([&] { TokenFile(path, DataFormat::uint16, 65537); }),
                 {"x.bin", "16 bits", "65537", "; set data.format: uint32"}));
  std::string header(1024, '\0');
  header.replace(0, 12, "\x88\xd8\x34\x01\x01\0\0\0\x02\0\0\0", 12); // llm.c's of two tokens
  TokenFile const llmc(folder.write("y.bin", header + "abcd"), DataFormat::automatic, 70000);
  REQUIRE(llmc.doubts().size() == 1);
  CHECK(contains(llmc.doubts()[0], {"16 bits", "70000"}));
}

TEST_CASE("a byte model with the vocabulary of a tokenizer is doubted") { // CASES 54
  std::string const text = "some text that has no zeros in it\n";
  CHECK(contains(doubts(text, DataFormat::text, 50257), {"below 256", "model.vocabulary is 50257", "; set"}));
  CHECK(doubts(text, DataFormat::text, 257).empty());
}
