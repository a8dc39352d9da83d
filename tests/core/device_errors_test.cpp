#include "core/device_errors.hpp"

#include "support/catch.hpp"

using namespace kozero;

TEST_CASE("errors of a device come out as what they are, with what to do") {
  std::string const ecc =
      explain_device_error("cudaStreamQuery", "cudaErrorECCUncorrectable", "uncorrectable ECC error encountered");
  CHECK(ecc ==
        "cudaStreamQuery failed (uncorrectable ECC error encountered, cudaErrorECCUncorrectable: the device's "
        "memory has an error that cannot be corrected: ECC, XID 48, 63, 64 or 95); have the node looked after and "
        "leave it out (sbatch --exclude), then go on with --resume auto");
  for (char const* name : {"cudaErrorContained", "cudaErrorNvlinkUncorrectable", "cudaErrorHardwareStackError",
                           "cudaErrorIllegalAddress", "cudaErrorLaunchFailure", "cudaErrorLaunchTimeout"}) {
    CHECK_THAT(explain_device_error("a call", name, "words"), Catch::Matchers::Contains("XID"));
  }
}

TEST_CASE("an error that is not known has CUDA's words and its name") {
  CHECK(
      explain_device_error("cudaEventQuery", "cudaErrorNew", "something new") ==
      "cudaEventQuery failed (something new, cudaErrorNew); look at the device and its driver: nvidia-smi, and XIDs in "
      "dmesg");
}
