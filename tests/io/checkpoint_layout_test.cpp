// What another program sees that reads a rank's file with HDF5 alone.
#include "comm/self_ranks.hpp"
#include "io/checkpoint.hpp"
#include "io/raw_file.hpp"
#include "support/catch.hpp"
#include "support/device_array.hpp"
#include "support/temporary_folder.hpp"

using namespace kozero;
using namespace kozero::test;

TEST_CASE("a rank's file is plain HDF5 with the layout that is documented") {
  std::vector<float> floats{1.5f, -2.25f, 1e-42f};
  std::vector<bf16> brains{bf16(0.5f), bf16(-3.0f), bf16(1e-40f), bf16(3e38f)};
  std::vector<fp16> halves{fp16(0.5f), fp16(-3.0f), fp16(1e-7f), fp16(6e4f)};
  std::vector<StateEntry> const entries{
      {"h.0.w", "m", {3, 5}, {4, 7}, DType::f32, floats.data(), Space::host},
      {"h.0.b", "bf16", {4}, {0, 4}, DType::bf16, brains.data(), Space::host},
      {"h.0.b", "fp16", {4}, {0, 4}, DType::f16, halves.data(), Space::host},
      {"h.0.b", "m", {4}, {2, 2}, DType::f32, nullptr, Space::host},
  };
  TemporaryFolder const run;
  SelfRanks ranks;
  CheckpointInfo info;
  info.counters.updates_applied = 123;
  RawFile const file(save_checkpoint(run.path(), info, entries, 1, ranks) / "rank-00000.h5");

  CHECK(file.numbers("/h.0.w/m") == std::vector<double>(floats.begin(), floats.end()));
  CHECK(file.attribute("/h.0.w/m", "begin", 1) == std::vector<long long>{4});
  CHECK(file.attribute("/h.0.w/m", "shape", 2) == std::vector<long long>{3, 5});
  CHECK(file.attribute("/", "rank", 1) == std::vector<long long>{0});
  CHECK(file.attribute("/", "ranks", 1) == std::vector<long long>{1});
  CHECK(file.attribute("/", "updates_applied", 1) == std::vector<long long>{123});
  // HDF5 converts them by the descriptions of their types that are in the file.
  CHECK(file.numbers("/h.0.b/bf16") == std::vector<double>(brains.begin(), brains.end()));
  CHECK(file.numbers("/h.0.b/fp16") == std::vector<double>(halves.begin(), halves.end()));
  CHECK(H5Lexists(file.id, "/h.0.b/m", H5P_DEFAULT) == 0);
}

TEST_CASE("what is in several pieces in memory is one dataset in a file") {
  DeviceArray const on_device(std::vector<float>{1, 2, 3});
  std::vector<float> on_host{4, 5};
  std::vector<StateEntry> const entries{
      {"h.0.w", "m", {3, 5}, {7, 9}, DType::f32, on_host.data(), Space::host},
      {"h.0.w", "m", {3, 5}, {9, 9}, DType::f32, nullptr, Space::pinned},
      {"h.0.w", "m", {3, 5}, {4, 7}, DType::f32, on_device.data(), Space::device},
  };
  TemporaryFolder const run;
  SelfRanks ranks;
  RawFile const file(save_checkpoint(run.path(), {}, entries, 1, ranks) / "rank-00000.h5");
  CHECK(file.numbers("/h.0.w/m") == std::vector<double>{1, 2, 3, 4, 5});
  CHECK(file.attribute("/h.0.w/m", "begin", 1) == std::vector<long long>{4});
  CHECK(file.attribute("/h.0.w/m", "shape", 2) == std::vector<long long>{3, 5});
}

TEST_CASE("attributes of fp16 and of delayed updates are there in runs that have them alone") {
  TemporaryFolder const run;
  SelfRanks ranks;
  char const* const names[] = {"loss_scale", "loss_scale_clean_in_row", "loss_scale_overflows",
                               "pending_gradient_scale"};
  CheckpointInfo info;
  {
    RawFile const file(save_checkpoint(run.path(), info, {}, 1, ranks) / "checkpoint.h5");
    for (char const* name : names) CHECK(H5Aexists(file.id, name) == 0);
  }
  info.loss_scale = {.scale = 4096, .clean_in_row = 21, .overflows = 3};
  info.pending_gradient_scale = 3;
  RawFile const file(save_checkpoint(run.path(), info, {}, 1, ranks) / "checkpoint.h5");
  std::vector<long long> found;
  for (char const* name : names) found.push_back(file.attribute("/", name, 1).front());
  CHECK(found == std::vector<long long>{4096, 21, 3, 3});
}
