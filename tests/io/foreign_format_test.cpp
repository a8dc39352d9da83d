#include "io/foreign_format.hpp"

#include "core/error.hpp"
#include "io/token_file.hpp"
#include "support/catch.hpp"
#include "support/temporary_folder.hpp"

#include <cstdint>
#include <utility>
#include <vector>

using namespace kozero;
using namespace kozero::test;
using namespace std::string_literals;

namespace {

std::string name_of(std::string const& head) {
  auto const foreign = foreign_format(std::as_bytes(std::span(head)));
  return foreign ? foreign->name : "";
}

} // namespace

// The heads are those that the formats' own programs wrote: gzip 1.12, xz 5.4, zstd 1.5, bzip2 1.0.8, lz4 1.9,
// tar 1.34, zip 3.0, Python 3.11 with NumPy, h5py, pyarrow, safetensors and pickle.
TEST_CASE("files that people give by mistake are known by how they begin") { // CASES 38
  CHECK(name_of("\x93NUMPY\x01\0v\0{'descr': '<u2', 'fortran_order': False, 'shape': (3,), }\n"s) ==
        "a NumPy array (.npy)");
  CHECK(name_of("PK\x03\x04\x14\0\0\0\0\0"s).find("zip") != std::string::npos);
  CHECK(name_of("\x1f\x8b\x08\x08\xea\x3b\x6b\x69\0\x03text\0\x4b"s) == "compressed by gzip");
  CHECK(name_of("\x1f\x8b\x08\0\0\0\0\0\0\x03\x4b\x4c"s) == "compressed by gzip");
  CHECK(name_of("\x28\xb5\x2f\xfd\x24\x03\x19\0\0"s) == "compressed by zstd");
  CHECK(name_of("\xfd\x37zXZ\0\0\x04\xe6\xd6"s) == "compressed by xz");
  CHECK(name_of("BZh91AY&SY\x19\x31\x65\x3d\0"s) == "compressed by bzip2");
  CHECK(name_of("\x04\x22\x4d\x18\x64\x40\xa7"s) == "compressed by lz4");
  CHECK(name_of("text"s + std::string(253, '\0') + "ustar\0\x30\x30"s) == "a tar archive");
  CHECK(name_of("PAR1\x15\x04\x15\x20\x15\x24\x4c\x15"s) == "a Parquet file");
  CHECK(name_of("ARROW1\0\0\xff\xff\xff\xff\xa8\0\0\0"s) == "an Arrow file");
  CHECK(name_of("\x89HDF\r\n\x1a\n\0\0\0\0"s) == "an HDF5 file");
  CHECK(name_of("\x48\0\0\0\0\0\0\0{\"w\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,8]}}"s)
            .find("safetensors") != std::string::npos);
  CHECK(name_of("\x80\x04\x95\x0b\0\0\0\0\0\0\0]\x94(K\x01"s) == "a pickle of Python");
  CHECK(name_of("SQLite format 3\0\x10\0"s) == "an SQLite database");
  CHECK(name_of("MMIDIDX\0\0\x01\0\0\0\0\0\0\0\x08"s).find("Megatron") != std::string::npos);
  CHECK(name_of("GGUF\x03\0\0\0"s).find("GGUF") != std::string::npos);
  CHECK(name_of("%PDF-1.7\n%\xe2\xe3\n"s) == "a PDF document");
}

TEST_CASE("texts and token ids are no such files, whatever they begin with") {
  CHECK(name_of("").empty());
  CHECK(name_of("a").empty());
  CHECK(name_of("PAR1 is where the story begins\n").empty());
  CHECK(name_of("GGUF, FEA1 and ORC\n").empty());
  CHECK(name_of("BZh of a text 9\n").empty());
  CHECK(name_of("\xff\xfe\0\0"s).empty());
  std::string ids; // uint16, from 0 on
  for (int i = 0; i < 256; ++i) ids += {static_cast<char>(i), '\0'};
  for (std::size_t first = 0; first < 500; first += 2) {
    INFO(first);
    CHECK(name_of(ids.substr(first)).empty());
  }
}

TEST_CASE("a foreign file is refused by name, with what to do") { // CASES 38
  TemporaryFolder const folder;
  std::string const path = folder.write("ids.npy", "\x93NUMPY\x01\0v\0{'descr': '<u2'}\n\x01\0\x02\0"s);
  for (DataFormat const format : {DataFormat::automatic, DataFormat::llmc}) {
    CHECK(contains(message_of<InputError>([&] { TokenFile(path, format, 50257); }),
                   {"ids.npy", "is a NumPy array (.npy)", "; write the ids alone", "tofile", "data.format"}));
  }
}

TEST_CASE("where the deck gives the format, ids that begin as a foreign file are read and doubted") { // CASES 38
  TemporaryFolder const folder;
  std::string const path = folder.write("ids.bin", "PAR1\x15\x04\x15\x20"s); // 16720, 12626, …
  TokenFile const ids(path, DataFormat::uint16, 50257);
  std::vector<std::int32_t> two(2);
  ids.read(0, two);
  CHECK(two == std::vector<std::int32_t>{0x4150, 0x3152});
  for (auto const& [format, vocabulary] : {std::pair{DataFormat::text, 256}, std::pair{DataFormat::uint16, 50257}}) {
    auto const doubts = TokenFile(path, format, vocabulary).doubts();
    REQUIRE(!doubts.empty());
    CHECK(contains(doubts.front(), {"ids.bin", "as if it were a Parquet file; if so, write its token ids"}));
  }
  CHECK(contains(message_of<InputError>([&] { TokenFile(path, DataFormat::automatic, 50257); }), {"a Parquet file"}));
}
