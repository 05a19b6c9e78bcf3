#include "config/huggingface/notes.h"

#include <algorithm>
#include <cctype>
#include <set>
#include <string>

namespace kf::config::huggingface {
namespace {

using Names = std::set<std::string_view>;

/// Entries of any value: who wrote the file, how a program runs the model, what its tokenizer and its sampling do.
const Names& notes() {
  static const Names all{
      // where a model comes from
      "author", "base_model", "base_model_name_or_path", "created_by", "custom_pipelines", "dataset", "datasets", "date", "description",
      "finetuned_from", "is_llama_config", "language", "library_name", "license", "license_link", "license_name", "model_name",
      "model_name_or_path", "model_revision", "pipeline_tag", "revision", "tags", "training_args", "transformers.js_config",
      // how a program runs it
      "_experts_implementation", "_moe_implementation", "attn_implementation_internal", "bf16", "fp16", "fp32", "flash_attn",
      "gradient_checkpointing", "ignore_keys_at_rope_validation", "keys_to_ignore_at_inference", "loss_type", "max_sequence_length",
      "neftune_noise_alpha", "num_labels", "num_logits_to_keep", "output_router_logits", "tf_legacy_loss", "tie_encoder_decoder",
      "use_bfloat16", "use_cache_quantization", "use_cache_kernel", "use_flash_attention", "use_flash_attention_2", "use_flash_attn",
      "use_memory_efficient_attention",
      // its tokenizer
      "add_bos_token", "add_eos_token", "bos_token", "chat_template", "clean_up_tokenization_spaces", "cls_token", "mask_token",
      "sep_token", "eos_token", "model_max_length", "pad_token", "padding_side", "truncation_side", "unk_token",
      "use_default_system_prompt",
      // how texts are drawn from it
      "bad_words_ids", "begin_suppress_tokens", "diversity_penalty", "do_sample", "early_stopping", "encoder_no_repeat_ngram_size",
      "epsilon_cutoff", "eta_cutoff", "exponential_decay_length_penalty", "length_penalty", "max_new_tokens", "min_length",
      "min_new_tokens", "min_p", "no_repeat_ngram_size", "num_beam_groups", "num_beams", "num_return_sequences", "output_scores", "prefix",
      "remove_invalid_values", "repetition_penalty", "return_dict_in_generate", "suppress_tokens", "temperature", "top_k", "top_p",
      "typical_p"};
  return all;
}

/// Entries that say nothing while they are false, 0 or empty.
const Names& switches() {
  static const Names all{"activation_dropout",
                         "alibi",
                         "attention_bias",
                         "attention_dropout",
                         "attn_pdrop",
                         "bias",
                         "dropout",
                         "embd_pdrop",
                         "embedding_dropout",
                         "hidden_dropout",
                         "mlp_bias",
                         "parallel_attn",
                         "per_layer_config",
                         "pruned_heads",
                         "qk_layernorm",
                         "qk_norm",
                         "qkv_bias",
                         "resid_pdrop",
                         "residual_dropout",
                         "rope_interleaved",
                         "use_bias",
                         "use_mrope",
                         "use_mup",
                         "use_qk_norm",
                         "use_qkv_bias",
                         "use_sliding_window",
                         "rope_scaling",
                         "layerdrop",
                         "classifier_dropout",
                         "num_nextn_predict_layers"};
  return all;
}

bool is_off(const Node& value) {
  const auto is = [&](const auto& off) { return value == Node(off); };
  return is(false) || is(std::int64_t{0}) || is(0.0) || (value.table() && value.table()->empty()) ||
         (value.array() && value.array()->empty());
}

/// "4.46.1": the number of a program. A word as "v2" may name a form of the model.
bool is_program_number(const Node& value) {
  const auto* const text = std::get_if<std::string>(&value.value);
  return text != nullptr && !text->empty() && std::isdigit(static_cast<unsigned char>(text->front())) != 0 &&
         text->find('.') != std::string::npos;
}

}  // namespace

bool is_note(std::string_view key, const Node& value) {
  const auto begins = [&](std::string_view start) { return key.starts_with(start); };
  const auto ends = [&](std::string_view end) { return key.ends_with(end); };
  return value.is_null() || notes().count(key) > 0 || (switches().count(key) > 0 && is_off(value)) || begins("unsloth_") ||
         begins("tokenizer_") || begins("transformers.js") || begins("summary_") || begins("wandb_") || ends("_token_id") ||
         ends("_token_ids") || ends("_token_index") || ((ends("_version") || key == "version") && is_program_number(value));
}

}  // namespace kf::config::huggingface
