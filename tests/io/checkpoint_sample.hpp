#pragma once
// A small, awkward training state for the tests of checkpoints: odd sizes, empty tensors, every element type, and bit
// patterns that no conversion would leave alone. Each byte follows from (tensor, kind, element) alone.

#include "io/checkpoint.hpp"
#include "support/device_array.hpp"

#include <string>
#include <vector>

namespace kozero::test {

struct SampleTensor {
  std::string name;
  std::vector<std::int64_t> shape;
  DType type = DType::f32;

  std::int64_t size() const {
    std::int64_t count = 1;
    for (std::int64_t const extent : shape) count *= extent;
    return count;
  }
};

inline std::vector<SampleTensor> odd_tensors() {
  return {{"wte", {257, 21}},
          {"h.0.ln_1.weight", {21}},
          {"h.0.nothing", {0}},
          {"h.0.none", {5, 0, 3}},
          {"h.0.attn.weight", {3, 7, 5}},
          {"scalar", {}},
          {"bf16", {11, 3}, DType::bf16},
          {"fp16", {3, 15}, DType::f16},
          {"double", {13}, DType::f64},
          {"long", {9}, DType::i64},
          {"int", {10}, DType::i32},
          {"byte", {17}, DType::u8}};
}

/// Fewer elements than ranks.
inline std::vector<SampleTensor> tiny_tensors() { return {{"w", {2, 1}}, {"b", {1}}}; }

/// Bytes [begin, end) of a tensor. Includes NaNs with payloads, infinities and denormals when seen as floats.
inline std::vector<unsigned char> sample_bytes(std::string const& name, std::string const& kind, std::int64_t begin,
                                               std::int64_t end) {
  std::uint64_t key = 14695981039346656037u;
  for (char const c : name + "/" + kind) key = (key ^ static_cast<unsigned char>(c)) * 1099511628211u;
  std::vector<unsigned char> bytes;
  for (std::int64_t i = begin; i < end; ++i) {
    std::uint64_t word = (key + static_cast<std::uint64_t>(i)) * 0x9E3779B97F4A7C15u;
    word = (word ^ (word >> 29)) * 0xBF58476D1CE4E5B9u;
    bytes.push_back(static_cast<unsigned char>(word >> 56));
  }
  return bytes;
}

/// What one rank holds: entries and the memory they point to.
class SampleState {
public:
  /// Cuts all elements of all tensors, end to end, into `ranks` parts that differ in size by one.
  static SampleState part(std::vector<SampleTensor> const& tensors, int rank, int ranks) {
    std::int64_t total = 0;
    for (auto const& tensor : tensors) total += tensor.size();
    Interval const own{total * rank / ranks, total * (rank + 1) / ranks};
    SampleState state;
    std::int64_t offset = 0;
    for (auto const& tensor : tensors) {
      Interval const in_block = intersect({offset, offset + tensor.size()}, own);
      state.add(tensor, {in_block.begin - offset, in_block.end - offset});
      offset += tensor.size();
    }
    return state;
  }
  static SampleState whole(std::vector<SampleTensor> const& tensors) { return part(tensors, 0, 1); }

  void add(SampleTensor const& tensor, Interval interval) {
    for (char const* kind : {"master", "m"}) add(tensor, kind, interval);
  }
  void add(SampleTensor const& tensor, std::string const& kind, Interval interval) {
    constexpr Space spaces[] = {Space::device, Space::host, Space::pinned};
    std::int64_t const width = size_of(tensor.type);
    Space const space = spaces[entries_.size() % 3];
    memory_.emplace_back(space, interval.size() * width);
    void* const data = interval.empty() ? nullptr : memory_.back().data();
    entries_.push_back({tensor.name, kind, tensor.shape, interval, tensor.type, data, space});
    write_values({data, space}, wanted(entries_.back()));
  }

  /// The same elements, those of each entry in memory of three entries and an empty one, in no order.
  SampleState in_pieces() const {
    SampleState pieces;
    for (StateEntry const& entry : entries_) {
      SampleTensor const tensor{entry.name, entry.shape, entry.type};
      Interval const all = entry.interval;
      std::int64_t const first = all.begin + all.size() / 3;
      std::int64_t const second = all.begin + all.size() / 2;
      for (Interval const piece :
           {Interval{second, all.end}, Interval{all.begin, first}, Interval{first, first}, Interval{first, second}}) {
        pieces.add(tensor, entry.kind, piece);
      }
    }
    return pieces;
  }

  std::vector<StateEntry>& entries() { return entries_; }

  void clear() {
    for (auto const& entry : entries_) {
      write_values({entry.data, entry.space}, std::vector<unsigned char>(wanted(entry).size(), 0xa5));
    }
  }
  /// The first entry whose memory is not what it should be; empty if there is none.
  std::string first_wrong() const {
    for (StateEntry const& entry : entries_) {
      auto const expected = wanted(entry);
      if (read_values<unsigned char>({entry.data, entry.space}, std::ssize(expected)) != expected) {
        return entry.name + "/" + entry.kind;
      }
    }
    return "";
  }

private:
  static std::vector<unsigned char> wanted(StateEntry const& entry) {
    std::int64_t const width = size_of(entry.type);
    return sample_bytes(entry.name, entry.kind, entry.interval.begin * width, entry.interval.end * width);
  }

  std::vector<StateEntry> entries_;
  std::vector<AnyMemory> memory_;
};

inline CheckpointInfo sample_info(std::int64_t updates) {
  CheckpointInfo info;
  info.counters = {updates + 3, updates, 3};
  info.deck = "model: {family: gpt2}\n# größer\n";
  info.global_batch = 32;
  info.state_hash = "99aa06d3014798d86001c324468d497f";
  info.version = "0.1.0";
  info.loss_scale = {.scale = 32768, .clean_in_row = 17, .overflows = 1};
  info.pending_gradient_scale = 1.0 / 3;
  info.training_data = {.bytes = 4000, .tokens = 2000, .hash = "0123456789abcdef0123456789abcdef"};
  return info;
}

} // namespace kozero::test
