// Attention by cuDNN: a graph of one node, by its header-only frontend, which loads the library when it is first used.
// What the graph is, attention_graph.cpp says; here it is put into cuDNN's words.
#include "kernels/attention_graph.hpp"

#include "core/error.hpp"

#include <cuda_runtime_api.h>
#include <cudnn_frontend.h>
#include <dlfcn.h>

#include <cstdlib>
#include <unordered_map>
#include <utility>
#include <vector>

static_assert(CUDNN_FRONTEND_VERSION >= 11500, "attention needs cuDNN's frontend 1.15 or newer");

void* cudnn_frontend::cudnn_dlhandle = nullptr; // the frontend's: what its calls are looked up in

namespace kozero {

namespace {

namespace fe = cudnn_frontend;

constexpr std::size_t oldest_version = 91100; // 9.10 has faults in the backward pass

void require(fe::error_t result, char const* what) {
  KOZERO_REQUIRE(result.is_good(),
                 "cuDNN {} (it refused: {}); take another version of it, or set model.attention: tiles", what,
                 result.get_message());
}

void require(cudnnStatus_t status, char const* what) {
  KOZERO_REQUIRE(status == CUDNN_STATUS_SUCCESS, "cuDNN {} (status {}); is the device free, and its driver new enough?",
                 what, static_cast<int>(status));
}

fe::DataType_t data_type(DType type) {
  switch (type) {
  case DType::f32: return fe::DataType_t::FLOAT;
  case DType::bf16: return fe::DataType_t::BFLOAT16;
  case DType::f16: return fe::DataType_t::HALF;
  default: break;
  }
  throw Error(fmt::format("attention of type {} (a fault of kozero); please report it", name_of(type)));
}

std::int64_t id_of(AttentionTensor tensor) { return static_cast<std::int64_t>(tensor) + 1; }

// The masks and the sums, which both passes say alike.
template <class Attributes>
void describe(Attributes& attributes, AttentionGraph const& graph) {
  attributes.set_attn_scale(graph.scale);
  if (graph.mask == AttentionMask::causal) {
    attributes.set_diagonal_alignment(fe::DiagonalAlignment_t::TOP_LEFT);
    attributes.set_diagonal_band_right_bound(0);
  }
}

class CudnnGraph final : public BuiltAttention {
public:
  CudnnGraph(AttentionGraph const& description, cudnnHandle_t handle) : pass_(description.pass), handle_(handle) {
    graph_.set_io_data_type(data_type(description.tensors[AttentionTensor::q].type))
        .set_intermediate_data_type(fe::DataType_t::FLOAT)
        .set_compute_data_type(fe::DataType_t::FLOAT);
    if (pass_ == AttentionPass::forward) {
      add_forward(description);
    } else {
      add_backward(description);
    }
    require(graph_.build(handle_, {fe::HeurMode_t::A}), "has no graph for attention of this shape");
    require(graph_.get_workspace_size(workspace_bytes_), "does not say what workspace attention needs");
  }

  std::int64_t workspace_bytes() const override { return workspace_bytes_; }

  void run(Lane::Exec const& exec, PerTensor<void*> const& data, void* workspace) const override {
    std::size_t const count = pass_ == AttentionPass::forward ? 5 : attention_tensors;
    std::unordered_map<std::int64_t, void*> pointers;
    for (std::size_t i = 0; i < count; ++i) pointers[id_of(static_cast<AttentionTensor>(i))] = data.values[i];
    require(fe::detail::set_stream(handle_, exec.cuda_stream()), "does not take the stream");
    require(graph_.execute(handle_, pointers, workspace), "does not run attention");
  }

private:
  using Tensor = std::shared_ptr<fe::graph::Tensor_attributes>;

  void set_layout(Tensor const& tensor, AttentionGraph const& description, AttentionTensor which) {
    TensorLayout const& layout = description.tensors[which];
    tensor->set_uid(id_of(which))
        .set_dim({layout.size.begin(), layout.size.end()})
        .set_stride({layout.stride.begin(), layout.stride.end()})
        .set_data_type(data_type(layout.type));
  }
  Tensor input(AttentionGraph const& description, AttentionTensor which) {
    Tensor const tensor = graph_.tensor(fe::graph::Tensor_attributes());
    set_layout(tensor, description, which);
    return tensor;
  }
  void output(Tensor const& tensor, AttentionGraph const& description, AttentionTensor which) {
    set_layout(tensor, description, which);
    tensor->set_output(true);
  }

  void add_forward(AttentionGraph const& description) {
    using enum AttentionTensor;
    auto attributes = fe::graph::SDPA_attributes().set_name("attention").set_generate_stats(true);
    describe(attributes, description);
    auto [o, statistics] =
        graph_.sdpa(input(description, q), input(description, k), input(description, v), std::move(attributes));
    output(o, description, out);
    output(statistics, description, stats);
  }

  void add_backward(AttentionGraph const& description) {
    using enum AttentionTensor;
    auto attributes = fe::graph::SDPA_backward_attributes()
                          .set_name("attention")
                          .set_deterministic_algorithm(description.sums == AttentionSums::in_order);
    describe(attributes, description);
    auto [of_q, of_k, of_v] = graph_.sdpa_backward(input(description, q), input(description, k), input(description, v),
                                                   input(description, out), input(description, dout),
                                                   input(description, stats), std::move(attributes));
    output(of_q, description, dq);
    output(of_k, description, dk);
    output(of_v, description, dv);
  }

  AttentionPass pass_;
  cudnnHandle_t handle_;
  fe::graph::Graph graph_;
  std::int64_t workspace_bytes_ = 0;
};

// Loads the library for the frontend. It looks for CUDA's runtime by name, and takes the older of two that it finds.
void load() {
  std::string const runtime = fmt::format("libcudart.so.{}", CUDART_VERSION / 1000);
  ::setenv("CUDNN_FRONTEND_CUDART_LIB_NAME", runtime.c_str(), 0);
  std::string const name = fmt::format("libcudnn.so.{}", CUDNN_MAJOR);
  fe::cudnn_dlhandle = ::dlopen(name.c_str(), RTLD_NOW);
  KOZERO_REQUIRE(fe::cudnn_dlhandle != nullptr,
                 "attention cannot load {} ({}); install cuDNN {} and put its folder into LD_LIBRARY_PATH, or set "
                 "model.attention: tiles, which is many times slower",
                 name, ::dlerror(), CUDNN_MAJOR);
  KOZERO_REQUIRE(fe::detail::get_backend_version() >= oldest_version,
                 "cuDNN {} is too old for attention (this wants 9.11 or newer); install a newer one",
                 fe::detail::get_backend_version_string());
}

class Cudnn final : public AttentionLibrary {
public:
  Cudnn() {
    load();
    require(fe::detail::create_handle(&handle_), "does not start");
  }
  ~Cudnn() override {
    graphs_.clear(); // before the handle that they were built with
    fe::detail::destroy_handle(handle_);
  }
  Cudnn(Cudnn const&) = delete;
  Cudnn& operator=(Cudnn const&) = delete;

  std::shared_ptr<BuiltAttention const> build(AttentionGraph const& graph) override {
    for (auto const& [known, built] : graphs_) {
      if (known == graph) return built;
    }
    return graphs_.emplace_back(graph, std::make_shared<CudnnGraph>(graph, handle_)).second;
  }

private:
  cudnnHandle_t handle_ = nullptr;
  std::vector<std::pair<AttentionGraph, std::shared_ptr<BuiltAttention const>>> graphs_;
};

} // namespace

std::optional<AttentionLibraryLimits> attention_library_limits() {
#if defined(KOKKOS_ARCH_HOPPER) || defined(KOKKOS_ARCH_HOPPER90)
  return AttentionLibraryLimits{"cuDNN", 256};
#else
  return AttentionLibraryLimits{"cuDNN", 128};
#endif
}

AttentionLibrary& attention_library() {
  static std::unique_ptr<Cudnn> library;
  if (!library) {
    library = std::make_unique<Cudnn>();
    Kokkos::push_finalize_hook([] { library.reset(); }); // while the device is still there
  }
  return *library;
}

} // namespace kozero
