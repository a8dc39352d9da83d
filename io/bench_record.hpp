#pragma once
#include <cstdint>
#include <string>
#include <vector>

namespace kozero {

/// What `kozero bench adam` measured.
struct AdamBenchRecord {
  struct Row {
    std::string compute = {};
    std::string gradients = {};
    int threads = 1;
    int bytes_per_parameter = 0;
    double ns_per_parameter = 0;
    double gb_per_s = 0;
    double probe_gb_per_s = 0;
    double share = 0;
  };
  std::int64_t parameters = 0;
  int threads = 1;
  std::string isa = {};
  std::vector<Row> rows = {};
};

/// One JSON object with all of it, by the names of the fields.
std::string to_json(AdamBenchRecord const& record);

} // namespace kozero
