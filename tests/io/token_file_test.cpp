#include "io/token_file.hpp"

#include "core/error.hpp"
#include "support/catch.hpp"
#include "support/temporary_folder.hpp"

#include <sys/stat.h>

#include <cstdint>
#include <numeric>
#include <string>
#include <vector>

using namespace kozero;
using namespace kozero::test;

namespace {

using Ids = std::vector<std::int32_t>;

/// Little-endian integers of `width` bytes each.
std::string packed(std::vector<std::uint32_t> const& values, int width) {
  std::string bytes;
  for (std::uint32_t const value : values) {
    for (int i = 0; i < width; ++i) bytes += static_cast<char>(value >> (8 * i) & 0xff);
  }
  return bytes;
}

std::string llmc(std::uint32_t magic, std::uint32_t version, std::uint32_t count, std::string const& tokens) {
  std::vector<std::uint32_t> header(256, 0);
  header[0] = magic;
  header[1] = version;
  header[2] = count;
  return packed(header, 4) + tokens;
}

Ids all_of(TokenFile const& file) {
  Ids ids(static_cast<std::size_t>(file.size()));
  file.read(0, ids);
  return ids;
}

std::string refusal(std::string const& path, DataFormat format, std::int64_t vocabulary) {
  return message_of<InputError>([&] { TokenFile(path, format, vocabulary); });
}

} // namespace

TEST_CASE("every format gives the ids that were written") {
  TemporaryFolder const folder;

  SECTION("text: bytes, also those above 127") {
    TokenFile const file(folder.write("a.txt", "az\n\xff"), DataFormat::text, 256);
    CHECK(all_of(file) == Ids{97, 122, 10, 255});
  }
  SECTION("uint16") {
    TokenFile const file(folder.write("a.dat", packed({0, 1, 256, 50256}, 2)), DataFormat::uint16, 50257);
    CHECK(all_of(file) == Ids{0, 1, 256, 50256});
  }
  SECTION("uint32") {
    TokenFile const file(folder.write("a.dat", packed({0, 65536, 128255}, 4)), DataFormat::uint32, 128256);
    CHECK(all_of(file) == Ids{0, 65536, 128255});
  }
  SECTION("llm.c's GPT-2") {
    auto const path = folder.write("a.dat", llmc(20240520, 1, 3, packed({50256, 464, 13}, 2)));
    CHECK(all_of(TokenFile(path, DataFormat::llmc, 50257)) == Ids{50256, 464, 13});
  }
  SECTION("llm.c's Llama 3") {
    auto const path = folder.write("a.dat", llmc(20240801, 7, 2, packed({128000, 9}, 4)));
    CHECK(all_of(TokenFile(path, DataFormat::llmc, 128256)) == Ids{128000, 9});
  }
}

TEST_CASE("a part of a file is read from where it was asked for") {
  TemporaryFolder const folder;
  TokenFile const file(folder.write("a.bin", packed({10, 11, 12, 13, 14}, 2)), DataFormat::automatic, 20);
  Ids part(2);
  file.read(3, part);
  CHECK(part == Ids{13, 14});
  file.read(5, std::span<std::int32_t>());
  CHECK_THROWS_AS(file.read(4, part), Error);
  CHECK_THROWS_AS(file.read(-1, part), Error);
  CHECK_THROWS_AS(file.read(INT64_MAX, part), Error);
}

TEST_CASE("the automatic format follows the header, then the name, and says why") {
  TemporaryFolder const folder;
  auto const opened = [&](std::string const& name, std::string const& bytes) {
    return TokenFile(folder.write(name, bytes), DataFormat::automatic, 1 << 16);
  };
  std::string const gpt2 = llmc(20240520, 1, 1, packed({7}, 2));
  CHECK(contains(opened("x.bin", gpt2).description(), {"llm.c", "uint16", "automatic", "magic"}));
  CHECK(contains(opened("x.txt", gpt2).description(), {"llm.c"}));
  CHECK(contains(opened("x.bin", llmc(20240801, 7, 1, packed({7}, 4))).description(), {"llm.c", "uint32"}));
  CHECK(contains(opened("x.bin", packed({7}, 2)).description(), {"uint16", "automatic", ".bin"}));
  CHECK(contains(opened("x.txt", "abc").description(), {"text", "automatic"}));
  CHECK(opened("x.bin", packed({7, 8}, 2)).size() == 2);
  CHECK(opened("x.txt", "abc").size() == 3);
  TokenFile const chosen(folder.write("y", "abc"), DataFormat::text, 256);
  CHECK(contains(chosen.description(), {"text", "data.format"}));
}

TEST_CASE("an empty file is a file of no tokens") {
  TemporaryFolder const folder;
  for (DataFormat const format : {DataFormat::automatic, DataFormat::text, DataFormat::uint16, DataFormat::uint32}) {
    CHECK(TokenFile(folder.write("empty", ""), format, 256).size() == 0);
  }
  CHECK(TokenFile(folder.write("a.bin", llmc(20240520, 1, 0, "")), DataFormat::llmc, 256).size() == 0);
}

TEST_CASE("what is no file is refused with its name and the cause") {
  TemporaryFolder const folder;
  CHECK(contains(refusal(folder.file("missing.txt"), DataFormat::automatic, 256),
                 {"missing.txt", "No such file", "; correct"}));
  CHECK(contains(refusal(folder.path(), DataFormat::automatic, 256), {folder.path(), "folder", "; correct"}));
  REQUIRE(::mkfifo(folder.file("pipe").c_str(), 0600) == 0);
  CHECK(contains(refusal(folder.file("pipe"), DataFormat::automatic, 256), {"pipe", "; correct"}));
}

TEST_CASE("an id that is not in the vocabulary is refused with file, offset and id") {
  TemporaryFolder const folder;

  SECTION("text") {
    CHECK(contains(refusal(folder.write("t.txt", std::string("\1\4\3\5", 4)), DataFormat::text, 5),
                   {"t.txt", "id 5 ", "byte offset 3,", "token 3 ", "model.vocabulary = 5"}));
  }
  SECTION("uint16, the first id that is too large") {
    CHECK(contains(refusal(folder.write("t.bin", packed({1, 2, 300, 400}, 2)), DataFormat::automatic, 300),
                   {"t.bin", "id 300 ", "byte offset 4,", "token 2 "}));
  }
  SECTION("uint32, also where int32 is negative") {
    CHECK(contains(refusal(folder.write("t.bin", packed({1, 4294967295u}, 4)), DataFormat::uint32, 50257),
                   {"t.bin", "id 4294967295 ", "byte offset 4,", "token 1 "}));
  }
  SECTION("after llm.c's header") {
    CHECK(contains(refusal(folder.write("t.bin", llmc(20240520, 1, 2, packed({1, 50257}, 2))), DataFormat::llmc, 50257),
                   {"t.bin", "id 50257 ", "byte offset 1026,", "token 1 "}));
  }
  SECTION("in the second piece of the check") {
    std::vector<std::uint32_t> ids(100000, 1);
    ids[99999] = 9;
    CHECK(contains(refusal(folder.write("t.bin", packed(ids, 2)), DataFormat::uint16, 9),
                   {"id 9 ", "byte offset 199998,", "token 99999 "}));
  }
  SECTION("the largest id of the vocabulary is not") {
    CHECK(refusal(folder.write("t.bin", packed({1, 299}, 2)), DataFormat::uint16, 300) == "");
  }
}

TEST_CASE("a file too large to be checked at the start is checked where it is read") {
  TemporaryFolder const folder;
  std::int64_t const tokens = TokenFile::checked_at_start_bytes / 2 + 1;
  std::string const path = folder.write("t.bin", "");
  std::filesystem::resize_file(path, static_cast<std::uintmax_t>(2 * tokens)); // zeros, without disk space
  std::fstream(path, std::ios::in | std::ios::out | std::ios::binary).seekp(2 * (tokens - 1)) << "\x34\x12";

  TokenFile const file(path, DataFormat::automatic, 256);
  REQUIRE(file.size() == tokens);
  Ids window(4);
  file.read(tokens - 5, window);
  CHECK(window == Ids{0, 0, 0, 0});
  CHECK(contains(message_of<InputError>([&] { file.read(tokens - 4, window); }),
                 {"t.bin", "id 4660 ", "byte offset " + std::to_string(2 * (tokens - 1)) + ","}));
}

TEST_CASE("bytes that make no whole token are refused") {
  TemporaryFolder const folder;
  CHECK(contains(refusal(folder.write("t.bin", "abc"), DataFormat::automatic, 65536),
                 {"t.bin", "3 bytes", "offset 2 ", "uint16", "; correct"}));
  CHECK(contains(refusal(folder.write("t.bin", "abcdef"), DataFormat::uint32, 65536), {"6 bytes", "offset 4 "}));
}

TEST_CASE("a header that is wrong is refused with file, offset and value") {
  TemporaryFolder const folder;
  auto const of = [&](std::string const& bytes, DataFormat format = DataFormat::llmc) {
    return refusal(folder.write("t.bin", bytes), format, 50257);
  };
  std::string const two = packed({1, 2}, 2);

  CHECK(of(llmc(20240520, 1, 2, two)) == "");
  CHECK(contains(of(llmc(20240521, 1, 2, two)), {"t.bin", "offset 0 ", "20240521", "20240520", "20240801"}));
  CHECK(contains(of(llmc(20240522, 1, 2, two), DataFormat::automatic), {"20240522", "multiple-choice"}));
  CHECK(contains(of(llmc(20240520, 2, 2, two)), {"t.bin", "version", "offset 4 ", " 2 ", "expected 1"}));
  CHECK(contains(of(llmc(20240801, 1, 1, two)), {"version", "expected 7"}));
  CHECK(contains(of(llmc(20240520, 1, 1, two)), {"t.bin", "offset 8 ", "1 tokens (2 bytes)", "4 bytes of tokens"}));
  CHECK(contains(of(llmc(20240520, 1, 3, two)), {"t.bin", "offset 8 ", "3 tokens (6 bytes)", "4 bytes of tokens"}));
  CHECK(contains(of(llmc(20240520, 1, 2, two + "x")), {"offset 8 ", "5 bytes of tokens"}));
  CHECK(contains(of(llmc(20240520, 1, 0xffffffffu, two)), {"offset 8 ", "-1 tokens"}));
  CHECK(contains(of(packed({20240520, 1, 2}, 4), DataFormat::automatic), {"12 bytes", "1024"}));
  CHECK(contains(of(""), {"0 bytes", "1024"}));
}

TEST_CASE("a header is read as tokens only where the deck says so, and is doubted") {
  TemporaryFolder const folder;
  std::string const path = folder.write("t.bin", llmc(20240520, 1, 2, packed({1, 1}, 2)));
  TokenFile const file(path, DataFormat::uint16, 65536);
  CHECK(file.size() == 514);
  CHECK(contains(file.doubts().front(), {"t.bin", "read as uint16", "a file of llm.c", "set data.format to llmc"}));
  CHECK(contains(refusal(path, DataFormat::uint32, 128256), {"id 20240520 ", "byte offset 0,"}));
}
