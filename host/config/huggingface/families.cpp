#include "config/huggingface/families.h"

#include <map>

namespace kf::config::huggingface {
namespace {

const std::map<std::string, Family>& families() {
  static const std::map<std::string, Family> all{
      {"afmoe", read_afmoe},
      {"apertus", read_apertus},
      {"arcee", read_arcee},
      {"bloom", read_bloom},
      {"codegen", read_codegen},
      {"cohere", read_cohere},
      {"cohere2", read_cohere2},
      {"cwm", read_cwm},
      {"dbrx", read_dbrx},
      {"deepseek_v2", read_deepseek_v2},
      {"deepseek_v3", read_deepseek_v3},
      {"dots1", read_dots1},
      {"ernie4_5", read_ernie4_5},
      {"ernie4_5_moe", read_ernie4_5_moe},
      {"exaone", read_exaone},
      {"exaone4", read_exaone4},
      {"exaone_moe", read_exaone_moe},
      {"falcon", read_falcon},
      {"flex_olmo", read_flex_olmo},
      {"gemma", read_gemma},
      {"gemma2", read_gemma2},
      {"gemma3_text", read_gemma3},
      {"gemma4_text", read_gemma4},
      {"glm", read_glm},
      {"glm4", read_glm4},
      {"glm4_moe", read_glm4_moe},
      {"glm4_moe_lite", read_glm4_moe_lite},
      {"gpt2", read_gpt2},
      {"gpt_bigcode", read_gpt_bigcode},
      {"gpt_neo", read_gpt_neo},
      {"gpt_neox", read_gpt_neox},
      {"gpt_oss", read_gpt_oss},
      {"gptj", read_gptj},
      {"granite", read_granite},
      {"granite_swa", read_granite_swa},
      {"granitemoe", read_granitemoe},
      {"granitemoe_swa", read_granitemoe_swa},
      {"granitemoeshared", read_granitemoeshared},
      {"helium", read_helium},
      {"hunyuan_v1_dense", read_hunyuan_v1_dense},
      {"hunyuan_v1_moe", read_hunyuan_v1_moe},
      {"hy_v3", read_hy_v3},
      {"hyperclovax", read_hyperclovax},
      {"internlm3", read_internlm3},
      {"iquestcoder", read_iquestcoder},
      {"jais2", read_jais2},
      {"llama", read_llama},
      {"llama4_text", read_llama4_text},
      {"mellum", read_mellum},
      {"minicpm3", read_minicpm3},
      {"minimax_m2", read_minimax_m2},
      {"ministral", read_ministral},
      {"ministral3", read_ministral3},
      {"mistral", read_mistral},
      {"mixtral", read_mixtral},
      {"mpt", read_mpt},
      {"nanochat", read_nanochat},
      {"nemotron", read_nemotron},
      {"olmo", read_olmo},
      {"olmo2", read_olmo2},
      {"olmo3", read_olmo3},
      {"olmoe", read_olmoe},
      {"opt", read_opt},
      {"persimmon", read_persimmon},
      {"phi", read_phi},
      {"phi3", read_phi3},
      {"qwen2", read_qwen2},
      {"qwen2_moe", read_qwen2_moe},
      {"qwen3", read_qwen3},
      {"qwen3_moe", read_qwen3_moe},
      {"sarvam_mla", read_sarvam_mla},
      {"sarvam_moe", read_sarvam_moe},
      {"seed_oss", read_seed_oss},
      {"smollm3", read_smollm3},
      {"solar_open", read_solar_open},
      {"stablelm", read_stablelm},
      {"starcoder2", read_starcoder2},
      {"vaultgemma", read_vaultgemma},
      {"youtu", read_youtu},
  };
  return all;
}

}  // namespace

Family find_family(const std::string& model_type) {
  const auto found = families().find(model_type);
  return found == families().end() ? nullptr : found->second;
}

std::vector<std::string> family_names() {
  std::vector<std::string> names;
  for (const auto& [name, family] : families()) {
    names.push_back(name);
  }
  return names;
}

}  // namespace kf::config::huggingface
