#include "io/foreign_words.hpp"

#include <algorithm>
#include <cctype>

namespace kozero {

namespace {

constexpr std::string_view in_tokens = "there in tokens, here in windows of model.context tokens";
constexpr std::string_view of_a_rank = "here of one rank; nanoGPT counts all ranks";
constexpr std::string_view both_betas = "both in one list, [0.9, 0.95]";
constexpr std::string_view type_by_name = "fp32, bf16 or fp16";

constexpr ForeignWord words[] = {
    // run
    {"max_iters", "run.updates"},
    {"max_steps", "run.updates"},
    {"train_iters", "run.updates"},
    {"num_iterations", "run.updates"},
    {"total_num_steps", "run.updates"},
    {"num_train_epochs", "run.updates", "an epoch is what the start table calls so many updates"},
    {"out_dir", "run.dir"},
    {"output_dir", "run.dir"},
    {"output_log_dir", "run.dir"},
    {"log_interval", "run.log_every"},
    {"logging_steps", "run.log_every"},
    {"steps_per_print", "run.log_every"},
    {"exit_duration_in_mins", "run.time_limit"},
    {"distributed_timeout_minutes", "run.stall_limit"},
    {"wandb_run_name", "run.name"},
    {"run_name", "run.name"},
    // model
    {"n_layer", "model.layers"},
    {"n_layers", "model.layers"},
    {"num_layers", "model.layers"},
    {"num_hidden_layers", "model.layers"},
    {"depth", "model.layers"},
    {"n_head", "model.heads"},
    {"n_heads", "model.heads"},
    {"num_heads", "model.heads"},
    {"num_attention_heads", "model.heads"},
    {"n_embd", "model.width"},
    {"d_model", "model.width"},
    {"hidden_size", "model.width"},
    {"channels", "model.width"},
    {"block_size", "model.context"},
    {"n_ctx", "model.context"},
    {"n_positions", "model.context"},
    {"seq_length", "model.context"},
    {"seq_len", "model.context"},
    {"sequence_length", "model.context"},
    {"max_seq_len", "model.context"},
    {"max_position_embeddings", "model.context"},
    {"vocab_size", "model.vocabulary"},
    {"padded_vocab_size", "model.vocabulary"},
    {"model_type", "model.family"},
    {"architecture", "model.family"},
    {"tie_word_embeddings", "model.tied"},
    // data
    {"dataset", "data.train"},
    {"data_path", "data.train"},
    {"input_bin", "data.train"},
    {"train_data_pattern", "data.train"},
    {"train_file", "data.train"},
    {"input_val_bin", "data.validation"},
    {"val_data_pattern", "data.validation"},
    {"validation_file", "data.validation"},
    // batch
    {"batch_size", "batch.micro"},
    {"device_batch_size", "batch.micro"},
    {"micro_batch_size", "batch.micro"},
    {"per_device_train_batch_size", "batch.micro"},
    {"train_micro_batch_size_per_gpu", "batch.micro"},
    {"gradient_accumulation_steps", "batch.accumulate", of_a_rank},
    {"grad_accum_steps", "batch.accumulate"},
    {"global_batch_size", "batch.global"},
    {"train_batch_size", "batch.global"},
    {"total_batch_size", "batch.global", in_tokens},
    // optimizer, schedule
    {"learning_rate", "optimizer.lr"},
    {"max_lr", "optimizer.lr"},
    {"beta1", "optimizer.betas", both_betas},
    {"beta2", "optimizer.betas", both_betas},
    {"adam_beta1", "optimizer.betas", both_betas},
    {"adam_beta2", "optimizer.betas", both_betas},
    {"adam_eps", "optimizer.eps"},
    {"adam_epsilon", "optimizer.eps"},
    {"grad_clip", "optimizer.clip"},
    {"clip_grad", "optimizer.clip"},
    {"max_grad_norm", "optimizer.clip"},
    {"gradient_clipping", "optimizer.clip"},
    {"lr_scheduler_type", "schedule.kind"},
    {"lr_decay_style", "schedule.kind"},
    {"decay_lr", "schedule.kind", "constant or cosine"},
    {"warmup_iters", "schedule.warmup"},
    {"warmup_steps", "schedule.warmup"},
    {"lr_warmup_iters", "schedule.warmup"},
    {"warmup_iterations", "schedule.warmup"},
    {"warmup_num_steps", "schedule.warmup"},
    {"warmup_ratio", "schedule.warmup", "here in updates"},
    {"learning_rate_decay_frac", "schedule.min_lr", "here a rate"},
    // precision
    {"dtype", "precision.compute", type_by_name},
    {"torch_dtype", "precision.compute", type_by_name},
    {"precision_dtype", "precision.compute", type_by_name},
    {"mixed_precision", "precision.compute", type_by_name},
    {"bf16", "precision.compute", "precision.compute: bf16"},
    {"fp16", "precision.compute", "precision.compute: fp16"},
    {"initial_scale_power", "precision.loss_scale.initial", "here the scale itself"},
    {"initial_loss_scale", "precision.loss_scale.initial"},
    {"loss_scale_window", "precision.loss_scale.window"},
    // ZeRO, parallel, offload
    {"zero_optimization", "zero.stage"},
    {"zero_stage", "zero.stage"},
    {"fsdp", "zero.stage", "FSDP's full sharding is stage 3"},
    {"offload_optimizer", "offload.optimizer"},
    {"cpu_offload", "offload.optimizer"},
    {"tensor_model_parallel_size", "parallel.tensor"},
    {"tensor_parallel_size", "parallel.tensor"},
    {"tp_size", "parallel.tensor"},
    {"context_parallel_size", "parallel.context"},
    {"sequence_parallel_size", "parallel.context"},
    {"gradient_checkpointing", "activations.recompute", "unit"},
    {"activation_checkpointing", "activations.recompute", "unit"},
    {"recompute_activations", "activations.recompute", "unit"},
    // checkpoints, evaluation
    {"save_interval", "checkpoint.every"},
    {"save_steps", "checkpoint.every"},
    {"checkpoint_every", "checkpoint.every"},
    {"save_total_limit", "checkpoint.keep"},
    {"eval_interval", "evaluate.every"},
    {"eval_steps", "evaluate.every"},
    {"val_loss_every", "evaluate.every"},
    {"eval_iters", "evaluate.batches"},
    {"val_max_steps", "evaluate.batches"},
};

} // namespace

std::span<ForeignWord const> foreign_words() { return words; }

ForeignWord const* find_foreign_word(std::string word) {
  std::ranges::transform(word, word.begin(), [](unsigned char c) { return c == '-' ? '_' : std::tolower(c); });
  auto const* const found = std::ranges::find(words, word, &ForeignWord::word);
  return found == std::end(words) ? nullptr : found;
}

} // namespace kozero
