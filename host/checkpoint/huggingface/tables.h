#pragma once
// The list of families.

#include <map>
#include <string>

#include "checkpoint/huggingface/rules.h"

namespace kf::huggingface {

/// model_type to its table.
const std::map<std::string, Rules>& tables();

Rules llama_rules();  // and whoever has its names
Rules phi3_rules();
Rules glm_rules();
Rules glm4_rules();
Rules gemma2_rules();
Rules gemma3_rules();
Rules gemma4_rules();
Rules afmoe_rules();
Rules olmo2_rules();
Rules gpt2_rules();
Rules starcoder2_rules();
Rules layernorm_rules();  // stablelm
Rules nemotron_rules();
Rules cohere_rules();
Rules mixtral_rules();
Rules qwen_moe_rules();
Rules gpt_oss_rules();
Rules deepseek_rules();
Rules gptj_rules();
Rules gpt_neox_rules();
Rules phi_rules();
Rules falcon_rules();
Rules bloom_rules();
Rules opt_rules();
Rules gpt_bigcode_rules();
Rules granite_moe_rules();
Rules sigmoid_moe_rules();  // glm4_moe, dots1
Rules llama4_rules();
Rules minimax_m2_rules();
Rules flex_olmo_rules();
Rules gpt_neo_rules();
Rules persimmon_rules();
Rules vaultgemma_rules();
Rules hunyuan_rules();
Rules ernie_moe_rules();
Rules mpt_rules();
Rules dbrx_rules();
Rules exaone_rules();
Rules jais2_rules();
Rules apertus_rules();
Rules nanochat_rules();
Rules hyperclovax_rules();
Rules granite_swa_rules();
Rules granite_moe_swa_rules();
Rules codegen_rules();
Rules sarvam_moe_rules();
Rules hy_v3_rules();

}  // namespace kf::huggingface
