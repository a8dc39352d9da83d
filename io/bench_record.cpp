#include "io/bench_record.hpp"

#include <nlohmann/json.hpp>

namespace kozero {

std::string to_json(AdamBenchRecord const& record) {
  using Json = nlohmann::ordered_json;
  Json rows = Json::array();
  for (AdamBenchRecord::Row const& row : record.rows) {
    rows.push_back({{"compute", row.compute},
                    {"gradients", row.gradients},
                    {"threads", row.threads},
                    {"bytes_per_parameter", row.bytes_per_parameter},
                    {"ns_per_parameter", row.ns_per_parameter},
                    {"gb_per_s", row.gb_per_s},
                    {"probe_gb_per_s", row.probe_gb_per_s},
                    {"share", row.share}});
  }
  Json const object = {
      {"parameters", record.parameters}, {"threads", record.threads}, {"isa", record.isa}, {"rows", std::move(rows)}};
  return object.dump(2) + '\n';
}

} // namespace kozero
