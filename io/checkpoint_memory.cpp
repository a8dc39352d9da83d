#include "io/checkpoint_memory.hpp"

#include "core/launch.hpp"

#include <cstring>

namespace kozero::checkpoint {

namespace {

/// `count` values of one floating-point type as another.
void convert_floats(DType to_type, void* to, DType from_type, void const* from, std::int64_t count) {
  with_float_type(to_type, [&]<class To>(To) {
    with_float_type(from_type, [&]<class From>(From) {
      auto const* const values = static_cast<From const*>(from);
      for (std::int64_t i = 0; i < count; ++i) {
        static_cast<To*>(to)[i] = static_cast<To>(static_cast<float>(values[i]));
      }
    });
  });
}

void copy_to(StateEntry const& entry, Interval part, unsigned char const* elements) {
  auto* const data = address_of(entry, part.begin);
  auto const bytes = static_cast<std::size_t>(part.size() * size_of(entry.type));
  if (host_reaches(entry.space)) {
    std::memcpy(data, elements, bytes);
  } else {
    copy(Lane(), on_device(data), on_host(elements), static_cast<std::int64_t>(bytes));
  }
}

/// `elements` of the entry's type, or converted to it in `converted`.
unsigned char const* in_type_of(StateEntry const& entry, DType type, unsigned char const* elements, std::int64_t count,
                                Bytes& converted) {
  if (type == entry.type) return elements;
  converted.resize(static_cast<std::size_t>(count * size_of(entry.type)));
  convert_floats(entry.type, converted.data(), type, elements, count);
  return converted.data();
}

std::int64_t divide_up(std::int64_t a, std::int64_t b) { return (a + b - 1) / b; }

/// What the entry holds of `tile`, elements of the flattened [out, in]. Element (o, i) is number o·in + i there and
/// i·out + o in the entry's [in, out].
template <class Word>
void transpose_into(StateEntry const& entry, Interval tile, Word const* elements) {
  std::int64_t const in = entry.shape[0];
  std::int64_t const out = entry.shape[1];
  auto* const data = static_cast<Word*>(entry.data);
  for (std::int64_t o = tile.begin / in; o * in < tile.end; ++o) {
    Interval const row = intersect(tile, {o * in, (o + 1) * in});
    Interval const held = {divide_up(std::max<std::int64_t>(entry.interval.begin - o, 0), out),
                           divide_up(std::max<std::int64_t>(entry.interval.end - o, 0), out)};
    Interval const wanted = intersect({row.begin - o * in, row.end - o * in}, held);
    for (std::int64_t i = wanted.begin; i < wanted.end; ++i) {
      data[i * out + o - entry.interval.begin] = elements[o * in + i - tile.begin];
    }
  }
}

} // namespace

void fill(StateEntry const& entry, Interval part, DType type, unsigned char const* elements) {
  Bytes converted;
  copy_to(entry, part, in_type_of(entry, type, elements, part.size(), converted));
}

TransposedFill::TransposedFill(std::vector<StateEntry> entries) {
  for (StateEntry& entry : entries) {
    if (entry.interval.empty()) continue;
    Target& target = targets_.emplace_back(Target{entry, entry, {}});
    if (host_reaches(entry.space)) continue;
    target.waiting.resize(static_cast<std::size_t>(entry.interval.size() * size_of(entry.type)));
    target.entry.data = target.waiting.data();
    target.entry.space = Space::host;
  }
}

void TransposedFill::take(Interval tile, DType type, unsigned char const* elements) {
  if (targets_.empty()) return;
  Bytes converted;
  auto const* const values = in_type_of(targets_.front().entry, type, elements, tile.size(), converted);
  for (Target const& target : targets_) {
    with_float_type(target.entry.type,
                    [&]<class T>(T) { transpose_into<T>(target.entry, tile, reinterpret_cast<T const*>(values)); });
  }
}

void TransposedFill::finish() const {
  for (Target const& target : targets_) {
    if (!target.waiting.empty()) copy_to(target.place, target.place.interval, target.waiting.data());
  }
}

} // namespace kozero::checkpoint
