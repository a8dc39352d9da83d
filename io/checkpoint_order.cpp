#include "io/checkpoint_order.hpp"

#include "core/error.hpp"
#include "io/checkpoint_file.hpp"
#include "io/checkpoint_folder.hpp"

#include <algorithm>
#include <chrono>
#include <tuple>

namespace kozero::checkpoint {

namespace fs = std::filesystem;

namespace {

std::optional<std::int64_t> generation_of(fs::path const& checkpoint) {
  try {
    return read_generation(checkpoint / info_name);
  } catch (Error const&) { // who opens it says what is wrong
    return {};
  }
}

bool leads_to(fs::path const& link, fs::path const& checkpoint) {
  std::error_code not_there;
  return fs::equivalent(link, checkpoint, not_there);
}

bool before(Saved const& a, Saved const& b) {
  auto const key = [](Saved const& saved) {
    return std::tuple(saved.generation.value_or(-1), saved.is_linked, saved.step);
  };
  return key(a) < key(b);
}

std::int64_t milliseconds_now() {
  auto const since_1970 = std::chrono::system_clock::now().time_since_epoch();
  return std::chrono::duration_cast<std::chrono::milliseconds>(since_1970).count();
}

/// A linked one that cannot be read is what the run was at, unless a later one is there.
void end_with_lost(std::vector<Saved>& all) {
  auto const lost = std::ranges::find_if(all, [](Saved const& saved) { return saved.is_linked && !saved.generation; });
  if (lost == all.end() || std::ranges::max(all, {}, &Saved::step).step > lost->step) return;
  std::rotate(lost, lost + 1, all.end());
}

} // namespace

std::vector<Saved> in_order_of_saving(fs::path const& checkpoints) {
  std::vector<Saved> all;
  for (std::int64_t const step : list_steps(checkpoints)) {
    fs::path const path = step_path(checkpoints, step);
    all.push_back({step, generation_of(path), leads_to(checkpoints / latest_name, path)});
  }
  std::ranges::sort(all, before);
  end_with_lost(all);
  return all;
}

std::int64_t next_generation(fs::path const& checkpoints) {
  std::int64_t greatest = 0;
  for (Saved const& saved : in_order_of_saving(checkpoints)) {
    greatest = std::max(greatest, saved.generation ? *saved.generation : milliseconds_now());
  }
  return greatest + 1;
}

} // namespace kozero::checkpoint
