#include "model/gpt2/units.hpp"

#include "core/launch.hpp"
#include "kernels/column_sum.hpp"
#include "kernels/elementwise.hpp"
#include "kernels/gelu.hpp"
#include "kernels/layernorm.hpp"
#include "kernels/linear.hpp"
#include "kernels/shapes.hpp"
#include "model/gpt2/layout.hpp"

#include <type_traits>

namespace kozero {

namespace {

template <class T>
DeviceBuffer<T> activation(Ledger& ledger, std::string const& label, std::int64_t count,
                           Category category = Category::activations) {
  return {ledger, category, label, count, DeviceBuffer<T>::Init::none};
}

template <class T>
Mat<T> matrix(DeviceBuffer<T> const& buffer, std::int64_t rows, std::int64_t cols) {
  return make_mat(buffer.data(), rows, cols);
}

template <class T>
Vec<T> vector(DeviceBuffer<T> const& buffer) {
  return make_vec(buffer.data(), buffer.size());
}

} // namespace

// --- embedding

template <class T>
void Gpt2Embedding<T>::forward(Lane const& lane, Params<T> params, MicroBatch const& batch) {
  using namespace gpt2_embedding_tensor;
  embedding_forward<T>(lane, x_, batch.tokens, view_.matrix(params[0], wte), view_.matrix(params[0], wpe));
}

template <class T>
void Gpt2Embedding<T>::backward(Lane const& lane, Params<T>, Grads grads, MicroBatch const& batch, float) {
  using namespace gpt2_embedding_tensor;
  embedding_backward<T>(lane, view_.matrix(grads[0], wte), view_.matrix(grads[0], wpe), d_, batch.tokens, batch.groups);
}

// --- layer

template <class T>
Gpt2LayerFrame<T>::Gpt2LayerFrame(Gpt2Sizes const& shape, Category category, std::string const& label, Ledger& ledger) {
  std::int64_t const n = shape.rows();
  std::int64_t const c = shape.width;
  auto const values = [&](char const* name, std::int64_t width) {
    return activation<T>(ledger, label + "." + name, n * width, category);
  };
  auto const statistics = [&](char const* name, std::int64_t count) {
    return activation<float>(ledger, label + "." + name, count, category);
  };
  ln_1 = values("ln_1", c);
  qkv = values("qkv", 3 * c);
  attention = values("attention", c);
  middle = values("middle", c);
  ln_2 = values("ln_2", c);
  fc = values("fc", 4 * c);
  gelu = values("gelu", 4 * c);
  mean_1 = statistics("mean_1", n);
  rstd_1 = statistics("rstd_1", n);
  mean_2 = statistics("mean_2", n);
  rstd_2 = statistics("rstd_2", n);
  logsumexp = statistics("logsumexp", n * shape.heads);
}

template <class T>
Gpt2Scratch<T>::Gpt2Scratch(Gpt2Sizes const& shape, Ledger& ledger)
    : wide(activation<T>(ledger, "scratch.wide", shape.rows() * 4 * shape.width)),
      narrow(activation<T>(ledger, "scratch.narrow", shape.rows() * shape.width)),
      sums(activation<float>(ledger, "scratch.sums", column_sum_scratch(shape.rows(), 4 * shape.width),
                             Category::workspace)) {}

template <class T>
Gpt2Layer<T>::Gpt2Layer(BlockLayout const& layout, Gpt2Sizes const& shape, Recompute recompute,
                        std::shared_ptr<Gpt2LayerFrame<T>> frame, std::shared_ptr<Attention<T> const> attention,
                        std::shared_ptr<Gpt2Scratch<T>> scratch, Mat<T> in, Mat<T> out, Mat<T> d)
    : view_(layout), shape_(shape), recompute_(recompute), frame_(std::move(frame)), attention_(std::move(attention)),
      scratch_(std::move(scratch)), in_(in), out_(out), d_(d) {}

template <class T>
void Gpt2Layer<T>::forward_to_gelu(Lane const& lane, Vec<T const> const& block) {
  using namespace gpt2_layer_tensor;
  auto& f = *frame_;
  std::int64_t const n = shape_.rows();
  std::int64_t const c = shape_.width;
  auto const weight = [&](int tensor) { return view_.matrix(block, tensor); };
  auto const bias = [&](int tensor) { return view_.vector(block, tensor); };

  layernorm_forward<T>(lane, matrix(f.ln_1, n, c), vector(f.mean_1), vector(f.rstd_1), in_, bias(ln_1_weight),
                       bias(ln_1_bias));
  linear_forward<T>(lane, matrix(f.qkv, n, 3 * c), matrix(f.ln_1, n, c),
                    view_.stacked_matrix(block, q_weight, v_weight), view_.stacked_vector(block, q_bias, v_bias));
  attention_->forward(lane, matrix(f.attention, n, c), vector(f.logsumexp), matrix(f.qkv, n, 3 * c));
  linear_forward<T>(lane, matrix(f.middle, n, c), matrix(f.attention, n, c), weight(attention_proj_weight),
                    bias(attention_proj_bias), WeightOrder::in_out);
  residual_layernorm_forward<T>(lane, matrix(f.ln_2, n, c), vector(f.mean_2), vector(f.rstd_2), matrix(f.middle, n, c),
                                in_, bias(ln_2_weight), bias(ln_2_bias));
  linear_forward<T>(lane, matrix(f.fc, n, 4 * c), matrix(f.ln_2, n, c), weight(fc_weight), bias(fc_bias));
  gelu_forward<T>(lane, vector(f.gelu), vector(f.fc));
}

template <class T>
void Gpt2Layer<T>::forward(Lane const& lane, Params<T> params, MicroBatch const&) {
  using namespace gpt2_layer_tensor;
  auto& f = *frame_;
  std::int64_t const n = shape_.rows();
  std::int64_t const c = shape_.width;
  forward_to_gelu(lane, params[0]);
  linear_forward<T>(lane, out_, matrix(f.gelu, n, 4 * c), view_.matrix(params[0], mlp_proj_weight),
                    view_.vector(params[0], mlp_proj_bias), WeightOrder::in_out);
  add<T>(lane, out_.flat(), out_.flat(), vector(f.middle));
}

template <class T>
void Gpt2Layer<T>::backward(Lane const& lane, Params<T> params, Grads grads, MicroBatch const&, float) {
  using namespace gpt2_layer_tensor;
  if (recompute_ == Recompute::unit) forward_to_gelu(lane, params[0]);
  auto& f = *frame_;
  std::int64_t const n = shape_.rows();
  std::int64_t const c = shape_.width;
  auto const weight = [&](int tensor) { return view_.matrix(params[0], tensor); };
  auto const scale = [&](int tensor) { return view_.vector(params[0], tensor); };
  auto const dweight = [&](int tensor) { return view_.matrix(grads[0], tensor); };
  auto const dbias = [&](int tensor) { return view_.vector(grads[0], tensor); };
  Mat<T> const dfc = matrix(scratch_->wide, n, 4 * c);
  Mat<T> const dqkv = matrix(scratch_->wide, n, 3 * c);
  Mat<T> const dnarrow = matrix(scratch_->narrow, n, c);
  Vec<float> const sums = scratch_->for_sums();

  linear_backward<T>(lane, dfc, dweight(mlp_proj_weight), dbias(mlp_proj_bias), sums, d_, matrix(f.gelu, n, 4 * c),
                     weight(mlp_proj_weight), WeightOrder::in_out);
  gelu_backward<T>(lane, vector(scratch_->wide), vector(f.fc));
  linear_backward<T>(lane, dnarrow, dweight(fc_weight), dbias(fc_bias), sums, dfc, matrix(f.ln_2, n, c),
                     weight(fc_weight));
  layernorm_backward<T>(lane, d_, dbias(ln_2_weight), dbias(ln_2_bias), sums, dnarrow, matrix(f.middle, n, c),
                        vector(f.mean_2), vector(f.rstd_2), scale(ln_2_weight));

  linear_backward<T>(lane, dnarrow, dweight(attention_proj_weight), dbias(attention_proj_bias), sums, d_,
                     matrix(f.attention, n, c), weight(attention_proj_weight), WeightOrder::in_out);
  attention_->backward(lane, dqkv, dnarrow, matrix(f.attention, n, c), vector(f.logsumexp), matrix(f.qkv, n, 3 * c));
  linear_backward<T>(lane, dnarrow, view_.stacked_matrix(grads[0], q_weight, v_weight),
                     view_.stacked_vector(grads[0], q_bias, v_bias), sums, dqkv, matrix(f.ln_1, n, c),
                     view_.stacked_matrix(params[0], q_weight, v_weight));
  layernorm_backward<T>(lane, d_, dbias(ln_1_weight), dbias(ln_1_bias), sums, dnarrow, in_, vector(f.mean_1),
                        vector(f.rstd_1), scale(ln_1_weight));
}

// --- head

template <class T>
Gpt2Head<T>::Gpt2Head(BlockLayout const& layout, BlockLayout const& embedding, Gpt2Sizes const& shape, bool tied,
                      std::shared_ptr<Gpt2Scratch<T>> scratch, Mat<T> x, Mat<T> d, Ledger& ledger)
    : view_(layout), embedding_(embedding), shape_(shape), tied_(tied), scratch_(std::move(scratch)), x_(x), d_(d),
      norm_(activation<T>(ledger, "head.norm", shape.rows() * shape.width)),
      mean_(activation<float>(ledger, "head.mean", shape.rows())),
      rstd_(activation<float>(ledger, "head.rstd", shape.rows())),
      losses_(activation<float>(ledger, "head.losses", shape.rows())) {
  std::int64_t const chunk = head_chunk_rows(shape.rows(), shape.vocabulary) * padded_vocabulary(shape.vocabulary);
  logits_ = {ledger, Category::logits, "head.logits", chunk, DeviceBuffer<float>::Init::none};
  if constexpr (!std::is_same_v<T, float>) {
    dlogits_ = {ledger, Category::logits, "head.dlogits", chunk, DeviceBuffer<T>::Init::none};
  }
}

template <class T>
Mat<T const> Gpt2Head<T>::weight(Params<T> params) const {
  return tied_ ? embedding_.matrix(params[1], gpt2_embedding_tensor::wte)
               : view_.matrix(params[0], gpt2_head_tensor::lm_head);
}

template <class T>
HeadScratch<T> Gpt2Head<T>::chunk() const {
  std::int64_t const cols = padded_vocabulary(shape_.vocabulary);
  Mat<float> const logits = matrix(logits_, logits_.size() / cols, cols);
  if constexpr (std::is_same_v<T, float>) {
    return {logits, logits};
  } else {
    return {logits, matrix(dlogits_, dlogits_.size() / cols, cols)};
  }
}

template <class T>
void Gpt2Head<T>::forward(Lane const& lane, Params<T> params, MicroBatch const&) {
  using namespace gpt2_head_tensor;
  layernorm_forward<T>(lane, matrix(norm_, shape_.rows(), shape_.width), vector(mean_), vector(rstd_), x_,
                       view_.vector(params[0], ln_f_weight), view_.vector(params[0], ln_f_bias));
}

template <class T>
void Gpt2Head<T>::backward(Lane const& lane, Params<T> params, Grads grads, MicroBatch const& batch, float scale) {
  using namespace gpt2_head_tensor;
  Mat<T> const norm = matrix(norm_, shape_.rows(), shape_.width);
  Mat<T> const dnorm = matrix(scratch_->narrow, shape_.rows(), shape_.width);
  Mat<float> const dweight = tied_ ? embedding_.matrix(grads[1], gpt2_embedding_tensor::wte)
                                   : view_.matrix(grads[0], gpt2_head_tensor::lm_head);
  head_loss_and_gradient<T>(lane, vector(losses_), dnorm, dweight, chunk(), norm, weight(params), batch.targets, scale);
  fill(lane, on_device(d_.flat()), T(0.0f), rows(d_) * cols(d_));
  layernorm_backward<T>(lane, d_, view_.vector(grads[0], ln_f_weight), view_.vector(grads[0], ln_f_bias),
                        scratch_->for_sums(), dnorm, x_, vector(mean_), vector(rstd_),
                        view_.vector(params[0], ln_f_weight));
}

template <class T>
void Gpt2Head<T>::loss(Lane const& lane, Params<T> params, MicroBatch const& batch) {
  head_loss<T>(lane, vector(losses_), chunk(), matrix(norm_, shape_.rows(), shape_.width), weight(params),
               batch.targets);
}

template <class T>
void Gpt2Head<T>::logits(Lane const& lane, Params<T> params, Mat<float> logits, std::int64_t first) {
  auto const rows_wanted = make_mat<T const>(norm_.data() + first * shape_.width, rows(logits), shape_.width);
  head_logits<T>(lane, logits, rows_wanted, weight(params));
}

template class Gpt2Embedding<float>;
template class Gpt2Embedding<bf16>;
template class Gpt2Embedding<fp16>;
template struct Gpt2LayerFrame<float>;
template struct Gpt2LayerFrame<bf16>;
template struct Gpt2LayerFrame<fp16>;
template struct Gpt2Scratch<float>;
template struct Gpt2Scratch<bf16>;
template struct Gpt2Scratch<fp16>;
template class Gpt2Layer<float>;
template class Gpt2Layer<bf16>;
template class Gpt2Layer<fp16>;
template class Gpt2Head<float>;
template class Gpt2Head<bf16>;
template class Gpt2Head<fp16>;

} // namespace kozero
