#include "checkpoint/huggingface/tables.h"

namespace kf::huggingface {

const std::map<std::string, Rules>& tables() {
  static const std::map<std::string, Rules> all{
      {"arcee", llama_rules()},
      {"bloom", bloom_rules()},
      {"cohere", cohere_rules()},
      {"cohere2", cohere_rules()},
      {"deepseek_v2", deepseek_rules()},
      {"deepseek_v3", deepseek_rules()},
      {"dots1", sigmoid_moe_rules()},
      {"ernie4_5", llama_rules()},
      {"exaone4", olmo2_rules()},
      {"falcon", falcon_rules()},
      {"flex_olmo", flex_olmo_rules()},
      {"gemma", llama_rules()},
      {"gemma2", gemma2_rules()},
      {"gemma3_text", gemma3_rules()},
      {"glm", glm_rules()},
      {"glm4", glm4_rules()},
      {"glm4_moe", sigmoid_moe_rules()},
      {"gpt2", gpt2_rules()},
      {"gpt_bigcode", gpt_bigcode_rules()},
      {"gpt_neox", gpt_neox_rules()},
      {"gpt_oss", gpt_oss_rules()},
      {"gptj", gptj_rules()},
      {"granite", llama_rules()},
      {"granitemoe", granite_moe_rules()},
      {"granitemoeshared", granite_moe_rules()},
      {"helium", llama_rules()},
      {"llama", llama_rules()},
      {"llama4_text", llama4_rules()},
      {"minimax_m2", minimax_m2_rules()},
      {"ministral", llama_rules()},
      {"mistral", llama_rules()},
      {"mixtral", mixtral_rules()},
      {"nemotron", nemotron_rules()},
      {"olmo", llama_rules()},
      {"olmo2", olmo2_rules()},
      {"olmo3", olmo2_rules()},
      {"olmoe", qwen_moe_rules()},
      {"opt", opt_rules()},
      {"phi", phi_rules()},
      {"phi3", phi3_rules()},
      {"qwen2", llama_rules()},
      {"qwen2_moe", qwen_moe_rules()},
      {"qwen3", llama_rules()},
      {"qwen3_moe", qwen_moe_rules()},
      {"seed_oss", llama_rules()},
      {"smollm3", llama_rules()},
      {"stablelm", layernorm_rules()},
      {"starcoder2", starcoder2_rules()},
  };
  return all;
}

}  // namespace kf::huggingface
