// Counts that a file claims are bounded by what the file is. HDF5 checksums them, so that they come from a fault
// elsewhere, or from somebody.
#include "comm/self_ranks.hpp"
#include "core/error.hpp"
#include "io/checkpoint.hpp"
#include "io/checkpoint_sample.hpp"
#include "io/raw_file.hpp"
#include "support/catch.hpp"
#include "support/temporary_folder.hpp"

#include <cmath>
#include <limits>

using namespace kozero;
using namespace kozero::test;
namespace fs = std::filesystem;

namespace {

constexpr long long most = std::numeric_limits<long long>::max();
constexpr long long least = std::numeric_limits<long long>::min();

struct Saved {
  Saved() {
    SelfRanks ranks;
    folder = save_checkpoint(run.path(), sample_info(10), state.entries(), 1, ranks);
  }
  fs::path file(char const* name) const { return folder / name; }
  template <class Number>
  void put(char const* file_name, char const* object, char const* name, Number value) const {
    RawFile(file(file_name), RawFile::Access::write).put(object, name, value);
  }
  /// What a reader says that is one of the last of many.
  std::string message() {
    return message_of<Error>([&] {
      state.clear();
      CheckpointReader const reader(folder, {4, 5});
      reader.read(state.entries());
    });
  }

  TemporaryFolder run;
  SampleState state = SampleState::whole({{"wte", {20, 30}}, {"norm", {3}}});
  fs::path folder;
};

} // namespace

TEST_CASE("counts of a run that no run can have are refused by name") { // CASES 48
  for (char const* const name :
       {"batches_seen", "updates_applied", "updates_skipped", "ranks", "global_batch", "loss_scale_clean_in_row",
        "loss_scale_overflows", "training_data_bytes", "training_data_tokens"}) {
    for (long long const value : {-1LL, least, most, (1LL << 50) + 1}) {
      INFO(name << " " << value);
      Saved saved;
      saved.put("checkpoint.h5", "/", name, value);
      CHECK(contains(saved.message(), {saved.file("checkpoint.h5").string(), name, std::to_string(value),
                                       "resume from another checkpoint"}));
    }
  }
  for (char const* const name : {"loss_scale", "pending_gradient_scale"}) {
    for (double const value : {HUGE_VAL, -HUGE_VAL, std::nan("")}) {
      Saved saved;
      saved.put("checkpoint.h5", "/", name, value);
      CHECK(contains(saved.message(), {saved.file("checkpoint.h5").string(), name}));
    }
  }
}

TEST_CASE("a place in the data past 64 bits is refused") { // CASES 48
  Saved saved;
  saved.put("checkpoint.h5", "/", "batches_seen", 1LL << 40);
  saved.put("checkpoint.h5", "/", "global_batch", 1LL << 30);
  CHECK(contains(saved.message(), {saved.file("checkpoint.h5").string(), "batches of 1073741824 windows"}));
}

TEST_CASE("ranks of which there are no files are refused by the first that misses one") { // CASES 48
  for (long long const ranks : {2LL, 1LL << 20, 1LL << 50}) {
    Saved saved;
    saved.put("checkpoint.h5", "/", "ranks", ranks);
    CHECK(contains(saved.message(),
                   {saved.file("checkpoint.h5").string(), std::to_string(ranks) + " ranks", "there is no"}));
  }
  SECTION("also where the last one is there") {
    Saved saved;
    saved.put("checkpoint.h5", "/", "ranks", 1LL << 50);
    std::ofstream(saved.folder / ("rank-" + std::to_string((1LL << 50) - 1) + ".h5")) << "no file";
    CHECK(contains(saved.message(), {"cannot read", "rank-900719925474099"})); // 4/5 of 2^50
  }
  SECTION("none at all") {
    Saved saved;
    saved.put("checkpoint.h5", "/", "ranks", 0LL);
    CHECK(contains(saved.message(), {saved.file("checkpoint.h5").string(), "ranks"}));
  }
}

TEST_CASE("files of a newer version are refused in words, and of none") {
  for (char const* const file : {"checkpoint.h5", "rank-00000.h5"}) {
    for (long long const version : {3LL, 0LL, -1LL, most}) {
      Saved saved;
      saved.put(file, "/", "format_version", version);
      CHECK(contains(saved.message(), {saved.file(file).string(), "format version " + std::to_string(version),
                                       "reads versions 1 to 2", "with the kozero that wrote it"}));
    }
  }
  Saved saved;
  saved.put("rank-00000.h5", "/", "format_version", 1LL);
  CHECK(contains(saved.message(), {"is of another checkpoint", "format version 1", "in version 2"}));
}

TEST_CASE("datasets that claim more than the file has are refused before memory is taken for them") { // CASES 48
  {
    Saved saved;
    {
      RawFile const file(saved.file("rank-00000.h5"), RawFile::Access::write);
      file.put_hollow("/huge/master", H5T_IEEE_F32LE, hsize_t{1} << 40);
      file.put("/huge/master", "begin", 0LL);
      file.put("/huge/master", "shape", 1LL << 40);
    }
    CHECK(contains(saved.message(), {"'huge/master'", "make no sense", "resume from another checkpoint"}));
  }
  // HDF5 stores 32 bits of a type's size: the second text is of size 0.
  for (std::size_t const size : {std::size_t{1} << 31, std::size_t{1} << 36}) {
    INFO("a text of " << size);
    Saved saved;
    {
      RawFile const file(saved.file("checkpoint.h5"), RawFile::Access::write);
      hid_t const type = H5Tcopy(H5T_C_S1);
      H5Tset_size(type, size);
      H5Ldelete(file.id, "deck", H5P_DEFAULT);
      file.put_hollow("/deck", type, 1);
      H5Tclose(type);
    }
    CHECK(
        contains(saved.message(), {"'deck'", saved.file("checkpoint.h5").string(), "resume from another checkpoint"}));
  }
}

TEST_CASE("places in a tensor and sizes of checksums that cannot be are refused") { // CASES 48
  for (auto const& [name, value] : {std::pair{"begin", -1LL},
                                    {"begin", most},
                                    {"begin", least},
                                    {"shape", -1LL},
                                    {"shape", most},
                                    {"checksum_elements", 0LL},
                                    {"checksum_elements", -1LL},
                                    {"checksum_elements", 1LL}}) {
    INFO(name << " " << value);
    Saved saved;
    saved.put("rank-00000.h5", "/norm/m", name, value);
    std::string const message = saved.message();
    INFO(message);
    CHECK(contains(message, {"'norm/m'", saved.file("rank-00000.h5").string(), "checkpoint"}));
  }
  Saved saved; // more than there is means all
  saved.put("rank-00000.h5", "/norm/m", "checksum_elements", most);
  CHECK(saved.message().empty());
}
