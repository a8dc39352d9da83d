#pragma once
// What the tests of the program share: a folder with a text, and command lines that use it.

#include "support/program.hpp"

#include <nlohmann/json.hpp>

#include <chrono>
#include <filesystem>
#include <stdexcept>
#include <thread>

namespace kozero::test {

class Workshop {
public:
  Workshop() {
    std::string text;
    for (int i = 0; text.size() < 4000; ++i) text += "line " + std::to_string(i * i) + "\n";
    folder_.write("text", text);
  }

  std::string file(std::string const& name) const { return folder_.file(name); }
  std::string write(std::string const& name, std::string const& bytes) const { return folder_.write(name, bytes); }
  std::string read(std::string const& name) const { return folder_.read(name); }

  /// kozero train of the odd deck on the text, into the folder `run`.
  std::vector<std::string> train(std::string const& run, std::vector<std::string> const& more = {}) const {
    std::vector<std::string> arguments = {KOZERO_BINARY,
                                          "train",
                                          KOZERO_SOURCE_DIR "/inputs/tests/odd.yaml",
                                          "data.train=" + file("text"),
                                          "data.format=text",
                                          "run.dir=" + file(run)};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return arguments;
  }

  /// The objects in a run's metrics.
  std::vector<nlohmann::json> metrics(std::string const& run) const {
    std::istringstream lines(read(run + "/metrics.jsonl"));
    std::vector<nlohmann::json> objects;
    for (std::string line; std::getline(lines, line);) {
      if (lines.eof()) break; // it is being written
      objects.push_back(nlohmann::json::parse(line));
    }
    return objects;
  }
  /// The same of two runs that did the same, whenever they were stopped; without the end, which is of the last process.
  std::vector<nlohmann::json> metrics_but_times(std::string const& run) const {
    auto objects = metrics(run);
    std::erase_if(objects, [](auto const& object) { return object.contains("event"); });
    for (auto& object : objects) {
      object.erase("seconds");
      object.erase("tokens_per_s");
    }
    return objects;
  }
  std::string hash(std::string const& run) const { return metrics(run).back().at("state_hash"); }

  /// The number in the name of a run's newest checkpoint.
  std::int64_t newest_step(std::string const& run) const {
    auto const name = std::filesystem::read_symlink(file(run + "/checkpoints/latest")).filename().string();
    return std::stoll(name.substr(name.find('-') + 1));
  }

private:
  TemporaryFolder folder_;
};

/// Calls `done` until it is true.
template <class Done>
void wait_until(Done const& done) {
  auto const start = std::chrono::steady_clock::now();
  while (!done()) {
    if (std::chrono::steady_clock::now() - start > std::chrono::seconds(60))
      throw std::runtime_error("nothing happens");
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
}

inline std::vector<std::string> on_ranks(int ranks, std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), {KOZERO_MPIEXEC, KOZERO_MPIEXEC_N, std::to_string(ranks)});
  return arguments;
}

/// How often `part` is in the text.
inline int times(std::string const& text, std::string const& part) {
  int count = 0;
  for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++count;
  return count;
}

} // namespace kozero::test
