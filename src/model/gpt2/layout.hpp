#pragma once
#include "config/config.hpp"
#include "layout/block_layout.hpp"
#include "layout/former_tensor.hpp"
#include "layout/unit_schedule.hpp"

#include <optional>
#include <string>

namespace kozero {

/// The tensors of GPT-2 (Radford et al., 2019), in units: embedding, L layers, head. Linear weights are [out, in],
/// those of the two projections back into the residual stream [in, out], so that a part of a tensor's first dimension
/// is what one of several ranks would compute with. Queries, keys and values stand one after the other in the block:
/// one product makes them. Initialised as GPT-2 is: normal with deviation 0.02, the two projections with 0.02 / √(2L),
/// norms one, biases zero.
ModelLayout gpt2_layout(ModelConfig const& config);

/// Which blocks the units read: a tied head reads the embedding's too.
std::vector<UnitUses> gpt2_uses(ModelConfig const& config);

/// Format 1 had q, k and v in one tensor, and the two projections [out, in].
std::optional<FormerTensor> gpt2_former_tensor(ModelConfig const& config, std::string const& name,
                                               std::int64_t format_version);

/// Places of a unit's tensors in its layout.
namespace gpt2_embedding_tensor {
enum : int { wte, wpe };
}
namespace gpt2_layer_tensor {
enum : int {
  ln_1_weight,
  ln_1_bias,
  q_weight,
  k_weight,
  v_weight,
  q_bias,
  k_bias,
  v_bias,
  attention_proj_weight,
  attention_proj_bias,
  ln_2_weight,
  ln_2_bias,
  fc_weight,
  fc_bias,
  mlp_proj_weight,
  mlp_proj_bias
};
}
namespace gpt2_head_tensor {
enum : int { ln_f_weight, ln_f_bias, lm_head };
}

} // namespace kozero
