#pragma once
// model_type to what reads its config.json. One function a family, in family_*.cpp.

#include <string>
#include <vector>

#include "config/huggingface/reader.h"

namespace kf::config::huggingface {

/// Reads the keys of its family into [model].
using Family = void (*)(Reader&);

/// Null where there is none.
Family find_family(const std::string& model_type);
/// In alphabetical order.
std::vector<std::string> family_names();

void read_llama(Reader& c);
void read_mistral(Reader& c);
void read_ministral(Reader& c);
void read_smollm3(Reader& c);
void read_granite(Reader& c);
void read_arcee(Reader& c);
void read_seed_oss(Reader& c);
void read_qwen2(Reader& c);
void read_qwen3(Reader& c);
void read_gemma(Reader& c);
void read_gemma2(Reader& c);
void read_gemma3(Reader& c);
void read_gemma4(Reader& c);
void read_afmoe(Reader& c);
void read_olmo(Reader& c);
void read_olmo2(Reader& c);
void read_olmo3(Reader& c);
void read_exaone4(Reader& c);
void read_gpt2(Reader& c);
void read_starcoder2(Reader& c);
void read_stablelm(Reader& c);
void read_nemotron(Reader& c);
void read_cohere(Reader& c);
void read_cohere2(Reader& c);
void read_phi3(Reader& c);
void read_glm(Reader& c);
void read_glm4(Reader& c);
void read_helium(Reader& c);
void read_ernie4_5(Reader& c);
void read_mixtral(Reader& c);
void read_qwen2_moe(Reader& c);
void read_qwen3_moe(Reader& c);
void read_olmoe(Reader& c);
void read_gpt_oss(Reader& c);
void read_deepseek_v2(Reader& c);
void read_deepseek_v3(Reader& c);
void read_gptj(Reader& c);
void read_gpt_neox(Reader& c);
void read_phi(Reader& c);
void read_falcon(Reader& c);
void read_bloom(Reader& c);
void read_opt(Reader& c);
void read_gpt_bigcode(Reader& c);
void read_granitemoe(Reader& c);
void read_granitemoeshared(Reader& c);
void read_glm4_moe(Reader& c);
void read_dots1(Reader& c);
void read_llama4_text(Reader& c);
void read_minimax_m2(Reader& c);
void read_flex_olmo(Reader& c);
void read_ernie4_5_moe(Reader& c);
void read_gpt_neo(Reader& c);
void read_persimmon(Reader& c);
void read_vaultgemma(Reader& c);
void read_cwm(Reader& c);
void read_hunyuan_v1_dense(Reader& c);
void read_hunyuan_v1_moe(Reader& c);
void read_mpt(Reader& c);
void read_dbrx(Reader& c);
void read_internlm3(Reader& c);
void read_iquestcoder(Reader& c);
void read_exaone(Reader& c);
void read_ministral3(Reader& c);
void read_jais2(Reader& c);
void read_apertus(Reader& c);
void read_nanochat(Reader& c);
void read_hyperclovax(Reader& c);
void read_granite_swa(Reader& c);
void read_granitemoe_swa(Reader& c);
void read_codegen(Reader& c);
void read_sarvam_mla(Reader& c);
void read_youtu(Reader& c);
void read_minicpm3(Reader& c);
void read_glm4_moe_lite(Reader& c);
void read_solar_open(Reader& c);
void read_sarvam_moe(Reader& c);
void read_exaone_moe(Reader& c);
void read_hy_v3(Reader& c);
void read_mellum(Reader& c);

}  // namespace kf::config::huggingface
