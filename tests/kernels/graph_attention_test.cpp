#include "support/catch.hpp"

#include "kernels/cudnn_stand_in.hpp"
#include "kernels/graph_attention.hpp"
#include "support/matrices.hpp"
#include "support/messages.hpp"

#include <array>
#include <functional>
#include <memory>

namespace {

using namespace kozero;
using namespace kozero::test;
using enum AttentionTensor;

constexpr std::int64_t plenty = attention_workspace_bound;

// Attention and its gradients, by graphs of the stand-in and by the tile kernel.
template <class T>
struct Pair {
  AttentionShape shape;
  std::int64_t width;
  Matrix<T> qkv, dout, out, dqkv, tile_out, tile_dqkv;
  Vector<float> logsumexp, tile_logsumexp, delta;
  CudnnStandIn library;
  Ledger ledger;

  Pair(AttentionShape const& s, std::int64_t d, std::int64_t bound)
      : shape(s), width(s.heads * d), qkv(rows(), 3 * width, 0, normal_numbers(rows() * 3 * width, 1)),
        dout(rows(), width, 0, normal_numbers(rows() * width, 2)), out(rows(), width), dqkv(rows(), 3 * width),
        tile_out(rows(), width), tile_dqkv(rows(), 3 * width), logsumexp(rows() * s.heads),
        tile_logsumexp(rows() * s.heads), delta(rows() * s.heads) {
    GraphAttention const attention(shape, d, dtype_of<T>, AttentionPasses::both, bound, ledger,
                                   [this]() -> AttentionLibrary& { return library; });
    Lane const lane;
    attention.forward(lane, out.view().data(), logsumexp.data(), qkv.view().data());
    attention.backward(lane, dqkv.view().data(), dout.view().data(), out.view().data(), logsumexp.data(),
                       qkv.view().data());
    attention_forward<T>(lane, shape, tile_out, tile_logsumexp, qkv);
    attention_backward<T>(lane, shape, tile_dqkv, delta, dout, tile_out, tile_logsumexp, qkv);
    lane.fence("test");
  }
  std::int64_t rows() const { return shape.batch * shape.context; }
};

template <class T>
void check_pair(AttentionShape const& shape, std::int64_t d, std::int64_t bound = plenty) {
  Pair<T> const pair(shape, d, bound);
  INFO("B " << shape.batch << " T " << shape.context << " H " << shape.heads << " D " << d << " bound " << bound);
  CHECK(relative_error(pair.out.get(), pair.tile_out.get()) < tolerance<T>);
  CHECK(relative_error(pair.logsumexp.get(), pair.tile_logsumexp.get()) < tolerance<float>);
  CHECK(relative_error(pair.dqkv.get(), pair.tile_dqkv.get()) < tolerance<T>);
}

// What a graph of a part of all heads looks like when all is well, and one rule broken.
std::string refusal(std::function<void(AttentionGraph&)> const& broken, AttentionPass pass = AttentionPass::backward) {
  AttentionGraph graph = attention_graph(pass, {2, 3}, {4, 64, 3}, 32, DType::bf16);
  broken(graph);
  return message_of([&] { CudnnStandIn().build(graph); });
}

} // namespace

TEST_CASE("A graph's attention is the tile kernel's, whole and in parts") {
  for (std::int64_t const context : {2, 33, 64, 130}) {
    for (std::int64_t const d : {8, 24, 64}) {
      check_pair<bf16>({3, context, 2}, d);
      check_pair<fp16>({3, context, 2}, d);
    }
  }
}

TEST_CASE("In parts of some windows, or of some heads, attention is the same") {
  AttentionShape const shape{5, 36, 6};
  std::int64_t const d = 16;
  auto const bound_of = [&](AttentionCut const& cut) { return backward_workspace_bytes(cut, shape.context, d); };
  struct Case {
    std::int64_t bound;
    AttentionCut cut;
  };
  for (Case const& one : {Case{bound_of({2, 6}), {2, 6}}, Case{bound_of({4, 6}), {3, 6}},
                          Case{bound_of({1, 4}), {1, 3}}, Case{bound_of({1, 1}), {1, 1}}}) {
    CHECK(cut_attention(shape, d, one.bound) == one.cut);
    check_pair<bf16>(shape, d, one.bound);
    check_pair<fp16>(shape, d, one.bound);
  }
}

TEST_CASE("A graph is built once, whatever the number of parts") {
  AttentionShape const shape{5, 36, 6};
  Pair<bf16> const pair(shape, 16, backward_workspace_bytes({2, 6}, shape.context, 16));
  REQUIRE(pair.library.graphs().size() == 3); // forward, two windows, the last one
  CHECK(pair.library.graphs()[0].tensors[q].size == std::array<std::int64_t, 4>{5, 6, 36, 16});
  CHECK(pair.library.graphs()[1].tensors[q].size == std::array<std::int64_t, 4>{2, 6, 36, 16});
  CHECK(pair.library.graphs()[2].tensors[q].size == std::array<std::int64_t, 4>{1, 6, 36, 16});
}

TEST_CASE("What a plan counts is what a run takes, and no library is loaded for it") {
  AttentionShape const shape{4, 64, 3};
  auto const taken = [&](Ledger::Buffers buffers) {
    Ledger ledger(buffers);
    CudnnStandIn library;
    GraphAttention const attention(shape, 32, DType::bf16, AttentionPasses::both, plenty, ledger,
                                   [&]() -> AttentionLibrary& {
                                     if (buffers == Ledger::Buffers::counted) FAIL("the library is loaded");
                                     return library;
                                   });
    return ledger.peak_bytes(Space::device, Category::workspace);
  };
  CHECK(taken(Ledger::Buffers::counted) == taken(Ledger::Buffers::allocated));
  CHECK(taken(Ledger::Buffers::counted) == backward_workspace_bytes({4, 3}, 64, 32));
}

TEST_CASE("A library that wants more workspace than was planned is refused") {
  class Greedy final : public AttentionLibrary, public BuiltAttention {
  public:
    std::shared_ptr<BuiltAttention const> build(AttentionGraph const&) override {
      return {this, [](auto) {}};
    }
    std::int64_t workspace_bytes() const override { return plenty + 1; }
    void run(Lane::Exec const&, PerTensor<void*> const&, void*) const override {}
  } greedy;
  Ledger ledger;
  CHECK(says(message_of([&] {
               GraphAttention({1, 64, 1}, 32, DType::bf16, AttentionPasses::both, plenty, ledger,
                              [&]() -> AttentionLibrary& { return greedy; });
             }),
             "were planned"));
}

TEST_CASE("The rules of cuDNN: a graph that keeps them is taken, each that breaks one is not") {
  CHECK(refusal([](AttentionGraph&) {}).empty());
  CHECK(refusal([](AttentionGraph&) {}, AttentionPass::forward).empty());
  auto const all = [](AttentionGraph& graph, auto const& change) {
    for (auto const tensor : {q, k, v, out, dout, dq, dk, dv}) change(graph.tensors[tensor]);
  };
  CHECK(says(refusal([&](auto& graph) { all(graph, [](auto& t) { t.type = DType::f32; }); }), "16 bits"));
  CHECK(says(refusal([&](auto& graph) { all(graph, [](auto& t) { t.size[3] = 20; }); }), "multiple of 8"));
  CHECK(says(refusal([&](auto& graph) { all(graph, [](auto& t) { t.size[3] = 264; }); }), "at most 256"));
  CHECK(says(refusal([&](auto& graph) { all(graph, [](auto& t) { t.size[2] = 1; }); }), "one token"));
  CHECK(says(refusal([&](auto& graph) { all(graph, [](auto& t) { t.size[0] = 0; }); }), "windows and heads"));
  CHECK(says(refusal([](auto& graph) { graph.tensors[dk].size[2] = 63; }), "of one size"));
  CHECK(says(refusal([](auto& graph) { graph.tensors[v].type = DType::f16; }), "of one type"));
  CHECK(says(refusal([](auto& graph) { graph.tensors[k].stride[3] = 2; }), "columns follow"));
  CHECK(says(refusal([](auto& graph) { graph.tensors[dout].stride[2] += 4; }), "multiples of 16 bytes"));
  CHECK(says(refusal([](auto& graph) { graph.tensors[stats].type = DType::bf16; }), "are fp32"));
  CHECK(says(refusal([](auto& graph) { graph.tensors[stats].size[2] = 1; }), "[window, head, token, 1]"));
  CHECK(says(refusal([](auto& graph) { graph.tensors[stats].stride[0] *= 2; }), "no gaps"));
  CHECK(says(refusal([](auto& graph) { graph.mask = AttentionMask::none; }), "comes later"));
  CHECK(says(refusal([](auto& graph) { graph.sums = AttentionSums::in_any_order; }), "deterministic"));
}

TEST_CASE("The rules of cuDNN: workspace below the bound, tensors there and where they may begin") {
  AttentionGraph const graph = attention_graph(AttentionPass::backward, {4, 3}, {4, 64, 3}, 32, DType::bf16);
  CHECK(says(message_of([&] { CudnnStandIn(1000).build(graph); }), "below the bound"));

  CudnnStandIn library;
  auto const built = library.build(graph);
  alignas(256) std::array<unsigned char, 512> memory = {};
  unsigned char* const begin = memory.data();
  PerTensor<void*> data;
  data.values.fill(begin);
  auto const run = [&](PerTensor<void*> const& pointers, void* workspace) {
    built->run(Lane::Exec(), pointers, workspace);
  };
  CHECK(says(message_of([&] { run(data, nullptr); }), "there is workspace"));
  CHECK(says(message_of([&] { run(data, begin + 128); }), "multiple of 256"));
  for (auto const tensor : {q, k, v, out, stats, dout, dq, dk, dv}) {
    PerTensor<void*> wrong = data;
    wrong[tensor] = nullptr;
    CHECK(says(message_of([&] { run(wrong, begin); }), "every tensor is there"));
    wrong[tensor] = begin + 8;
    CHECK(says(message_of([&] { run(wrong, begin); }), "begin at multiples of 16"));
  }
}

TEST_CASE("All shapes that models ask for keep the rules, in every part") {
  struct Asked {
    char const* model;
    AttentionShape shape;
    std::int64_t head_width;
  };
  for (Asked const& asked :
       {Asked{"124M", {16, 1024, 12}, 64}, Asked{"124M", {64, 1024, 12}, 64}, Asked{"355M", {16, 1024, 16}, 64},
        Asked{"774M", {8, 1024, 20}, 64}, Asked{"1.5B", {16, 1024, 25}, 64}, Asked{"7B", {1, 2048, 32}, 128},
        Asked{"7B", {4, 4096, 32}, 128}, Asked{"7B", {2, 16384, 32}, 128}, Asked{"odd", {7, 130, 3}, 24},
        Asked{"odd", {61, 1023, 25}, 40}, Asked{"odd", {5, 2, 1}, 8}, Asked{"odd", {3, 6004, 11}, 256}}) {
    auto const& [model, shape, d] = asked;
    INFO(model << ": B " << shape.batch << " T " << shape.context << " H " << shape.heads << " D " << d);
    CudnnStandIn library;
    std::int64_t const width = shape.heads * d;
    AttentionCut const cut = cut_attention(shape, d, plenty);
    CHECK(backward_workspace_bytes(cut, shape.context, d) <= plenty);
    CHECK_NOTHROW(
        library.build(attention_graph(AttentionPass::forward, {shape.batch, shape.heads}, shape, d, DType::bf16)));
    for (auto const& part : attention_parts(shape, cut)) {
      auto const graph = attention_graph(AttentionPass::backward, part.size(), shape, d, DType::bf16);
      REQUIRE_NOTHROW(library.build(graph));
      CHECK(library.build(graph)->workspace_bytes() <= backward_workspace_bytes(cut, shape.context, d));
      PartOffsets const at = offsets_of(part, shape, d);
      CHECK(at.qkv * 2 % 16 == 0);
      CHECK(width * 2 % 16 == 0);
      CHECK(at.out * 2 % 16 == 0);
      CHECK(at.stats * 4 % 16 == 0);
      // The last element of a part is inside of the whole.
      auto const last = [](TensorLayout const& tensor) {
        std::int64_t sum = 0;
        for (std::size_t i = 0; i < 4; ++i) sum += (tensor.size[i] - 1) * tensor.stride[i];
        return sum;
      };
      std::int64_t const tokens = shape.batch * shape.context;
      CHECK(at.qkv + 2 * width + last(graph.tensors[v]) < tokens * 3 * width);
      CHECK(at.out + last(graph.tensors[out]) < tokens * width);
      CHECK(at.stats + last(graph.tensors[stats]) < tokens * shape.heads);
    }
  }
}
