#include "data/batch_reader.hpp"

#include "core/error.hpp"

#include <algorithm>

namespace kozero {

namespace {

/// Calls read_row(i, inputs, targets) for each row.
template <class ReadRow>
void for_each_row(TokenRows const& rows, ReadRow const& read_row) {
  auto const context = static_cast<std::size_t>(rows.context);
  KOZERO_ASSERT(context > 0 && rows.inputs.size() % context == 0 && rows.targets.size() == rows.inputs.size());
  for (std::size_t i = 0; i < rows.inputs.size() / context; ++i) {
    read_row(static_cast<std::int64_t>(i), rows.inputs.subspan(i * context, context),
             rows.targets.subspan(i * context, context));
  }
}

} // namespace

void read_training_rows(TokenSet const& set, Sampler const& sampler, std::int64_t first_sample, TokenRows const& rows) {
  for_each_row(rows, [&](std::int64_t row, auto inputs, auto targets) {
    set.read_window(sampler.window(first_sample + row), inputs, targets);
  });
}

void read_evaluation_rows(TokenSet const& set, std::int64_t first_window, TokenRows const& rows) {
  for_each_row(rows, [&](std::int64_t row, auto inputs, auto targets) {
    if (std::int64_t const window = first_window + row; window < set.windows) {
      set.read_window(window, inputs, targets);
    } else {
      std::fill(inputs.begin(), inputs.end(), 0);
      std::fill(targets.begin(), targets.end(), no_target);
    }
  });
}

} // namespace kozero
