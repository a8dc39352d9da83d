// Checkpoints that lead out of their own files: none is followed.
#include "comm/self_ranks.hpp"
#include "core/error.hpp"
#include "io/checkpoint.hpp"
#include "io/checkpoint_sample.hpp"
#include "io/raw_file.hpp"
#include "support/catch.hpp"
#include "support/temporary_folder.hpp"

#include <sys/stat.h>

using namespace kozero;
using namespace kozero::test;
namespace fs = std::filesystem;

namespace {

/// A checkpoint, and another of the same state to lead to.
struct Saved {
  Saved() {
    SelfRanks ranks;
    folder = save_checkpoint(run.path(), sample_info(10), state.entries(), 1, ranks);
    twin = save_checkpoint(other.path(), sample_info(10), state.entries(), 1, ranks);
  }
  std::string file(char const* name) const { return folder / name; }
  std::string message() {
    return message_of<Error>([&] { CheckpointReader(folder).read(state.entries()); });
  }
  bool refused(char const* file_name, std::vector<std::string> parts) {
    parts.push_back(file(file_name));
    parts.emplace_back("resume from another checkpoint");
    std::string const text = message();
    INFO(text);
    return contains(text, parts);
  }

  TemporaryFolder run, other;
  SampleState state = SampleState::whole({{"wte", {20, 30}}, {"norm", {3}}});
  fs::path folder, twin;
};

/// Replaces a dataset by one of the same name, type, size and attributes, with its elements in another file.
template <class Lead>
void lead_elsewhere(std::string const& path, char const* dataset, Lead const& lead) {
  RawFile const file(path, RawFile::Access::write);
  hid_t const old = H5Dopen2(file.id, dataset, H5P_DEFAULT);
  hid_t const type = H5Dget_type(old);
  hid_t const space = H5Dget_space(old);
  hid_t const creation = H5Pcreate(H5P_DATASET_CREATE);
  lead(creation, space);
  H5Lmove(file.id, dataset, file.id, "/former", H5P_DEFAULT, H5P_DEFAULT);
  hid_t const now = H5Dcreate2(file.id, dataset, type, space, H5P_DEFAULT, creation, H5P_DEFAULT);
  REQUIRE(now >= 0);
  H5Dclose(now);
  H5Pclose(creation);
  H5Sclose(space);
  H5Tclose(type);
  H5Dclose(old);
  H5Ldelete(file.id, "/former", H5P_DEFAULT);
}

} // namespace

TEST_CASE("a file of a checkpoint that is no plain file is refused, and not waited for") { // CASES 41
  for (char const* const name : {"checkpoint.h5", "rank-00000.h5"}) {
    INFO(name);
    Saved saved;
    fs::remove(saved.file(name));
    fs::create_symlink(saved.twin / name, saved.file(name));
    CHECK(saved.refused(name, {"it is a link"}));
    fs::remove(saved.file(name));
    REQUIRE(::mkfifo(saved.file(name).c_str(), 0600) == 0);
    CHECK(saved.refused(name, {"it is a pipe"}));
    fs::remove(saved.file(name));
    fs::create_directory(saved.file(name));
    CHECK(saved.refused(name, {"it is a folder"}));
  }
}

TEST_CASE("links of HDF5 are not followed") { // CASES 41
  for (auto const& [name, object] :
       {std::pair{"checkpoint.h5", "deck"}, {"rank-00000.h5", "wte"}, {"rank-00000.h5", "wte/m"}}) {
    INFO(name << " " << object);
    for (bool const external : {true, false}) {
      Saved saved;
      {
        RawFile const file(saved.file(name), RawFile::Access::write);
        H5Lmove(file.id, object, file.id, "/former", H5P_DEFAULT, H5P_DEFAULT);
        if (external) {
          H5Ldelete(file.id, "/former", H5P_DEFAULT);
          H5Lcreate_external((saved.twin / name).c_str(), object, file.id, object, H5P_DEFAULT, H5P_DEFAULT);
        } else {
          H5Lcreate_soft("/former", file.id, object, H5P_DEFAULT, H5P_DEFAULT);
        }
      }
      CHECK(saved.refused(name, {"is a link to elsewhere"}));
    }
  }
}

TEST_CASE("elements in other files are not read") { // CASES 41
  SECTION("external storage") {
    Saved saved;
    std::string const secret = saved.run.write("secret", std::string(4096, 'x'));
    lead_elsewhere(saved.file("rank-00000.h5"), "/norm/m",
                   [&](hid_t creation, hid_t) { REQUIRE(H5Pset_external(creation, secret.c_str(), 0, 12) >= 0); });
    CHECK(saved.refused("rank-00000.h5", {"'norm/m'", "in other files"}));
  }
  SECTION("a virtual dataset") {
    Saved saved;
    lead_elsewhere(saved.file("rank-00000.h5"), "/norm/m", [&](hid_t creation, hid_t space) {
      REQUIRE(H5Pset_virtual(creation, space, (saved.twin / "rank-00000.h5").c_str(), "/norm/m", space) >= 0);
    });
    CHECK(saved.refused("rank-00000.h5", {"'norm/m'", "in other files"}));
  }
}
