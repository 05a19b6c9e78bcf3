#include "config/export/class_names.h"

#include <algorithm>
#include <map>

#include "config/huggingface/families.h"

namespace kf::config {
namespace {

const std::map<std::string, std::string>& classes() {
  static const std::map<std::string, std::string> all{
      {"afmoe", "AfmoeForCausalLM"},
      {"apertus", "ApertusForCausalLM"},
      {"arcee", "ArceeForCausalLM"},
      {"bloom", "BloomForCausalLM"},
      {"codegen", "CodeGenForCausalLM"},
      {"cohere", "CohereForCausalLM"},
      {"cohere2", "Cohere2ForCausalLM"},
      {"cwm", "CwmForCausalLM"},
      {"dbrx", "DbrxForCausalLM"},
      {"deepseek_v2", "DeepseekV2ForCausalLM"},
      {"deepseek_v3", "DeepseekV3ForCausalLM"},
      {"dots1", "Dots1ForCausalLM"},
      {"ernie4_5", "Ernie4_5ForCausalLM"},
      {"ernie4_5_moe", "Ernie4_5_MoeForCausalLM"},
      {"exaone", "LlamaForCausalLM"},
      {"exaone4", "Exaone4ForCausalLM"},
      {"exaone_moe", "ExaoneMoeForCausalLM"},
      {"falcon", "FalconForCausalLM"},
      {"flex_olmo", "FlexOlmoForCausalLM"},
      {"gemma", "GemmaForCausalLM"},
      {"gemma2", "Gemma2ForCausalLM"},
      {"gemma3_text", "Gemma3ForCausalLM"},
      {"gemma4_text", "Gemma4ForCausalLM"},
      {"glm", "GlmForCausalLM"},
      {"glm4", "Glm4ForCausalLM"},
      {"glm4_moe", "Glm4MoeForCausalLM"},
      {"glm4_moe_lite", "Glm4MoeLiteForCausalLM"},
      {"gpt2", "GPT2LMHeadModel"},
      {"gpt_bigcode", "GPTBigCodeForCausalLM"},
      {"gpt_neo", "GPTNeoForCausalLM"},
      {"gpt_neox", "GPTNeoXForCausalLM"},
      {"gpt_oss", "GptOssForCausalLM"},
      {"gptj", "GPTJForCausalLM"},
      {"granite", "GraniteForCausalLM"},
      {"granite_swa", "GraniteSWAForCausalLM"},
      {"granitemoe", "GraniteMoeForCausalLM"},
      {"granitemoe_swa", "GraniteMoeSWAForCausalLM"},
      {"granitemoeshared", "GraniteMoeSharedForCausalLM"},
      {"helium", "HeliumForCausalLM"},
      {"hunyuan_v1_dense", "HunYuanDenseV1ForCausalLM"},
      {"hunyuan_v1_moe", "HunYuanMoEV1ForCausalLM"},
      {"hy_v3", "HYV3ForCausalLM"},
      {"hyperclovax", "HyperCLOVAXForCausalLM"},
      {"internlm3", "LlamaForCausalLM"},
      {"iquestcoder", "LlamaForCausalLM"},
      {"jais2", "Jais2ForCausalLM"},
      {"llama", "LlamaForCausalLM"},
      {"llama4_text", "Llama4ForCausalLM"},
      {"mellum", "MellumForCausalLM"},
      {"minicpm3", "MiniCPM3ForCausalLM"},
      {"minimax_m2", "MiniMaxM2ForCausalLM"},
      {"ministral", "MinistralForCausalLM"},
      {"ministral3", "Ministral3ForCausalLM"},
      {"mistral", "MistralForCausalLM"},
      {"mixtral", "MixtralForCausalLM"},
      {"mpt", "MptForCausalLM"},
      {"nanochat", "NanoChatForCausalLM"},
      {"nemotron", "NemotronForCausalLM"},
      {"olmo", "OlmoForCausalLM"},
      {"olmo2", "Olmo2ForCausalLM"},
      {"olmo3", "Olmo3ForCausalLM"},
      {"olmoe", "OlmoeForCausalLM"},
      {"opt", "OPTForCausalLM"},
      {"persimmon", "PersimmonForCausalLM"},
      {"phi", "PhiForCausalLM"},
      {"phi3", "Phi3ForCausalLM"},
      {"qwen2", "Qwen2ForCausalLM"},
      {"qwen2_moe", "Qwen2MoeForCausalLM"},
      {"qwen3", "Qwen3ForCausalLM"},
      {"qwen3_moe", "Qwen3MoeForCausalLM"},
      {"sarvam_mla", "DeepseekV3ForCausalLM"},
      {"sarvam_moe", "Glm4MoeForCausalLM"},
      {"seed_oss", "SeedOssForCausalLM"},
      {"smollm3", "SmolLM3ForCausalLM"},
      {"solar_open", "SolarOpenForCausalLM"},
      {"stablelm", "StableLmForCausalLM"},
      {"starcoder2", "Starcoder2ForCausalLM"},
      {"vaultgemma", "VaultGemmaForCausalLM"},
      {"youtu", "YoutuForCausalLM"},
  };
  return all;
}

}  // namespace

std::string class_of_family(const std::string& model_type) {
  const auto found = classes().find(model_type);
  return found == classes().end() ? "" : found->second;
}

FamiliesByUse families_by_use() {
  FamiliesByUse out{{"llama", "mistral", "qwen2", "qwen3", "mixtral"},
                    {"olmo2", "olmo", "gemma", "gemma2", "gemma3_text", "granite", "gpt2", "gpt_neox", "phi", "phi3", "cohere", "stablelm",
                     "nemotron", "olmoe", "qwen3_moe", "qwen2_moe", "deepseek_v3"},
                    {}};
  const auto holds = [](const std::vector<std::string>& names, const std::string& name) {
    return std::find(names.begin(), names.end(), name) != names.end();
  };
  for (const std::string& name : huggingface::family_names()) {
    if (!holds(out.first, name) && !holds(out.common, name)) {
      out.others.push_back(name);
    }
  }
  return out;
}

}  // namespace kf::config
