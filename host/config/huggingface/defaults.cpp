#include "config/huggingface/defaults.h"

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "core/text.h"

namespace kf::config::huggingface {
namespace {

using Row = std::vector<std::pair<std::string, Node>>;

const std::map<std::string, Row>& rows() {
  static const std::map<std::string, Row> all{
      {"apertus", {{"pad_token_id", Node(std::int64_t{3})}}},
      {"cohere", {{"pad_token_id", Node(std::int64_t{0})}}},
      {"cohere2", {{"pad_token_id", Node(std::int64_t{0})}}},
      {"cwm", {{"num_key_value_heads", Node(std::int64_t{8})}}},
      {"deepseek_v3", {{"num_key_value_heads", Node(std::int64_t{128})}, {"routed_scaling_factor", Node(2.5)}}},
      {"dots1", {{"norm_topk_prob", Node(false)}, {"num_key_value_heads", Node(std::int64_t{32})}}},
      {"ernie4_5", {{"num_key_value_heads", Node(std::int64_t{2})}, {"pad_token_id", Node(std::int64_t{0})}}},
      {"ernie4_5_moe", {{"pad_token_id", Node(std::int64_t{0})}}},
      {"exaone", {{"num_key_value_heads", Node(std::int64_t{8})}, {"pad_token_id", Node(std::int64_t{0})}}},
      {"exaone4", {{"num_key_value_heads", Node(std::int64_t{32})}}},
      {"exaone_moe", {{"num_key_value_heads", Node(std::int64_t{32})}, {"pad_token_id", Node(std::int64_t{0})}}},
      {"gemma", {{"num_key_value_heads", Node(std::int64_t{16})}, {"pad_token_id", Node(std::int64_t{0})}}},
      {"gemma2", {{"pad_token_id", Node(std::int64_t{0})}}},
      {"gemma3_text", {{"pad_token_id", Node(std::int64_t{0})}}},
      {"gemma4_text", {{"num_key_value_heads", Node(std::int64_t{4})}, {"pad_token_id", Node(std::int64_t{0})}}},
      {"glm", {{"num_key_value_heads", Node(std::int64_t{2})}}},
      {"glm4", {{"num_key_value_heads", Node(std::int64_t{2})}}},
      {"glm4_moe", {{"num_key_value_heads", Node(std::int64_t{8})}}},
      {"glm4_moe_lite", {{"num_key_value_heads", Node(std::int64_t{20})}, {"routed_scaling_factor", Node(1.8)}}},
      {"gpt2", {{"attn_pdrop", Node(0.1)}, {"embd_pdrop", Node(0.1)}, {"resid_pdrop", Node(0.1)}}},
      {"gpt_bigcode", {{"attn_pdrop", Node(0.1)}, {"embd_pdrop", Node(0.1)}, {"resid_pdrop", Node(0.1)}}},
      {"gpt_oss", {{"num_key_value_heads", Node(std::int64_t{8})}}},
      {"helium", {{"num_key_value_heads", Node(std::int64_t{20})}, {"pad_token_id", Node(std::int64_t{3})}}},
      {"hunyuan_v1_dense", {{"pad_token_id", Node(std::int64_t{0})}}},
      {"hunyuan_v1_moe", {{"pad_token_id", Node(std::int64_t{0})}}},
      {"hy_v3", {{"initializer_range", Node(0.006)}, {"num_key_value_heads", Node(std::int64_t{8})}}},
      {"internlm3", {{"num_key_value_heads", Node(std::int64_t{2})}, {"pad_token_id", Node(std::int64_t{2})}}},
      {"iquestcoder", {{"num_key_value_heads", Node(std::int64_t{8})}}},
      {"llama4_text", {{"attention_chunk_size", Node(std::int64_t{8192})}, {"num_key_value_heads", Node(std::int64_t{8})}}},
      {"minicpm3", {{"initializer_range", Node(0.1)}, {"num_key_value_heads", Node(std::int64_t{40})}}},
      {"minimax_m2", {{"num_key_value_heads", Node(std::int64_t{8})}}},
      {"ministral", {{"num_key_value_heads", Node(std::int64_t{8})}}},
      {"ministral3", {{"num_key_value_heads", Node(std::int64_t{8})}, {"pad_token_id", Node(std::int64_t{11})}}},
      {"mistral", {{"num_key_value_heads", Node(std::int64_t{8})}, {"sliding_window", Node(std::int64_t{4096})}}},
      {"mixtral", {{"num_key_value_heads", Node(std::int64_t{8})}}},
      {"nanochat", {{"pad_token_id", Node(std::int64_t{1})}}},
      {"nemotron", {{"initializer_range", Node(0.0134)}}},
      {"olmo", {{"pad_token_id", Node(std::int64_t{1})}}},
      {"olmo2", {{"pad_token_id", Node(std::int64_t{1})}}},
      {"olmo3", {{"pad_token_id", Node(std::int64_t{1})}}},
      {"olmoe", {{"pad_token_id", Node(std::int64_t{1})}}},
      {"opt", {{"dropout", Node(0.1)}, {"pad_token_id", Node(std::int64_t{1})}}},
      {"qwen2", {{"num_key_value_heads", Node(std::int64_t{32})}}},
      {"qwen2_moe", {{"num_key_value_heads", Node(std::int64_t{16})}}},
      {"qwen3", {{"num_key_value_heads", Node(std::int64_t{32})}}},
      {"sarvam_mla", {{"initializer_range", Node(0.006)}, {"routed_scaling_factor", Node(2.5)}}},
      {"sarvam_moe", {{"initializer_range", Node(0.006)}, {"pad_token_id", Node(std::int64_t{0})}}},
      {"seed_oss",
       {{"attention_dropout", Node(0.1)},
        {"num_key_value_heads", Node(std::int64_t{8})},
        {"pad_token_id", Node(std::int64_t{1})},
        {"residual_dropout", Node(0.1)}}},
      {"solar_open", {{"num_key_value_heads", Node(std::int64_t{8})}}},
      {"stablelm", {{"num_key_value_heads", Node(std::int64_t{32})}}},
      {"starcoder2", {{"initializer_range", Node(0.018042)}, {"num_key_value_heads", Node(std::int64_t{2})}}},
      {"vaultgemma", {{"pad_token_id", Node(std::int64_t{0})}}},
      {"youtu", {{"num_key_value_heads", Node(std::int64_t{16})}}},
  };
  return all;
}

}  // namespace

void add_class_defaults(const std::string& model_type, Table& keys) {
  const auto row = rows().find(model_type);
  if (row == rows().end()) {
    return;
  }
  for (const auto& [key, value] : row->second) {
    if (keys.find(key) == nullptr) {
      keys[key] = value;
    }
  }
}

}  // namespace kf::config::huggingface
