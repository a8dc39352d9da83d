#pragma once
// Whole runs of the real trainer on a small text, and what they wrote, read back.

#include "core/rng.hpp"
#include "data/batch_shape.hpp"
#include "io/checkpoint.hpp"
#include "model/families.hpp"
#include "support/small_run.hpp"
#include "support/temporary_folder.hpp"
#include "support/world.hpp"
#include "train/trainer.hpp"
#include "zero/plan.hpp"

#include <nlohmann/json.hpp>

#include <exception>
#include <optional>

namespace kozero::test {

using Json = nlohmann::json;

/// A folder that all ranks work in. Rank 0 makes it, and removes it when all have come to its end.
class SharedFolder {
public:
  explicit SharedFolder(Ranks& ranks) : ranks_(ranks) {
    if (ranks.rank() == 0) {
      mine_.emplace();
      path_ = mine_->path();
    }
    ranks.broadcast(path_, 0);
  }
  ~SharedFolder() {
    if (std::uncaught_exceptions() == 0) ranks_.barrier();
  }
  SharedFolder(SharedFolder const&) = delete;
  SharedFolder& operator=(SharedFolder const&) = delete;

  std::string file(std::string const& name) const { return path_ + "/" + name; }
  /// Rank 0 writes; the others see it too.
  std::string write(std::string const& name, std::string const& bytes) const {
    if (mine_) mine_->write(name, bytes);
    ranks_.barrier();
    return file(name);
  }

private:
  Ranks& ranks_;
  std::optional<TemporaryFolder> mine_;
  std::string path_;
};

/// Words of a few letters in random order.
inline std::string text_of(std::size_t bytes) {
  std::string text;
  RngKey const key{5, RngPurpose::shuffle, 0, 0};
  for (std::uint64_t word = 0; text.size() < bytes; ++word) {
    Philox4 const bits = random_bits(key, word);
    for (std::uint32_t i = 0; i <= bits[0] % 6; ++i) text += static_cast<char>('a' + (bits[1] >> (4 * i)) % 16);
    text += ' ';
  }
  text.resize(bytes);
  return text;
}

/// The bytes that hold so many windows of `context`.
inline std::size_t bytes_of_windows(std::int64_t windows, std::int64_t context) {
  return static_cast<std::size_t>(windows * context + 1);
}

/// A few updates of the odd model in fp32, without validation.
inline Config small_config(std::string const& text_file) {
  Config config;
  config.run.updates = 8;
  config.model = odd_model();
  config.data = {.train = text_file, .validation = "0", .format = DataFormat::text};
  config.batch.micro = 2;
  config.optimizer.lr = 3e-3;
  config.schedule.warmup = 3;
  config.precision.compute = ComputeType::fp32;
  return config;
}

/// What most cases begin with: the ranks, a folder that they share, and a run of a few updates on 90 windows.
struct RunFixture : World {
  SharedFolder const folder{world.ranks};
  Config config = small_config(folder.write("text", text_of(3000)));
};

/// What a run left in metrics.jsonl, without the times, which are never twice the same.
struct Metrics {
  std::vector<Json> lines; // all, in order
  std::vector<Json> updates, evaluations, ends;

  explicit Metrics(std::string const& run_folder) {
    std::ifstream file(run_folder + "/metrics.jsonl");
    for (std::string line; std::getline(file, line);) {
      Json object = Json::parse(line);
      object.erase("seconds");
      object.erase("tokens_per_s");
      lines.push_back(object);
      (object.contains("event") ? ends : object.contains("lr") ? updates : evaluations).push_back(object);
    }
  }

  std::string hash() const { return ends.back().at("state_hash"); }
  std::vector<double> losses() const { return numbers("loss"); }
  /// Of every update; NaN where the file says null.
  std::vector<double> numbers(char const* key) const {
    std::vector<double> values;
    for (auto const& update : updates) {
      values.push_back(update.at(key).is_null() ? std::nan("") : update.at(key).get<double>());
    }
    return values;
  }
};

/// Runs the trainer in a folder. Collective; `resume` is a checkpoint.
inline RunEnd run_trainer(Config const& config, std::string const& folder, Group const& group,
                          std::optional<std::filesystem::path> const& resume = {}) {
  Ledger ledger;
  std::filesystem::create_directories(folder);
  RunInput const input{.config = config,
                       .resolved_deck = "",
                       .corpus = open_corpus(config.data, config.model.vocabulary, config.model.context),
                       .batch = batch_shape(config.batch, group.size()),
                       .folder = folder,
                       .resume = resume};
  RunEnd const end = train(input, group, ledger).end;
  group.ranks.barrier(); // rank 0 has written its last line
  return end;
}

/// A run to its end, and what it wrote.
inline Metrics trained(Config const& config, std::string const& folder, Group const& group,
                       std::optional<std::filesystem::path> const& resume = {}) {
  if (run_trainer(config, folder, group, resume) != RunEnd::done) throw std::runtime_error("the run was stopped");
  return Metrics(folder);
}

/// Reductions of gradients in one batch, as FaultyCollectives counts them.
inline std::int64_t reductions_a_batch(Config const& config, int ranks) {
  auto const blocks = static_cast<std::int64_t>(architecture_of(config.model)->layout().size());
  return blocks * Plan(sharding_of(config), 0, ranks, batch_shape(config.batch, ranks).accumulate).reductions();
}

} // namespace kozero::test
