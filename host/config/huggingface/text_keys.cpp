#include "config/huggingface/text_keys.h"

#include <algorithm>
#include <map>
#include <set>

#include "config/huggingface/notes.h"
#include "config/tree/json.h"
#include "core/error.h"
#include "core/input_file.h"
#include "core/text.h"

namespace kf::config::huggingface {
namespace {

/// What a wrapper may hold, and the keys that such files leave out because they are its class's defaults.
struct Wrapper {
  std::vector<std::string> inside;
  std::vector<std::pair<std::string, std::int64_t>> usual;
};

const std::map<std::string, Wrapper>& wrappers() {
  static const std::map<std::string, Wrapper> all{
      {"gemma3",
       {{"gemma3_text"},
        {{"vocab_size", 262208},
         {"hidden_size", 2304},
         {"intermediate_size", 9216},
         {"num_hidden_layers", 26},
         {"num_attention_heads", 8},
         {"num_key_value_heads", 4},
         {"max_position_embeddings", 131072}}}},
      {"gemma4", {{"gemma4_text"}, {{"num_key_value_heads", 4}}}},
      {"llama4", {{"llama4_text"}, {}}},
      {"mistral3", {{"mistral", "ministral3"}, {}}},
  };
  return all;
}

/// Keys beside text_config that say how pictures reach the text model, or nothing about its numbers.
bool beside_text(const std::string& key) {
  static const std::set<std::string> known{"architectures",
                                           "model_type",
                                           "dtype",
                                           "torch_dtype",
                                           "text_config",
                                           "vision_config",
                                           "audio_config",
                                           "vision_soft_tokens_per_image",
                                           "transformers_version",
                                           "initializer_range",
                                           "boi_token_index",
                                           "eoi_token_index",
                                           "image_token_index",
                                           "image_token_id",
                                           "boi_token_id",
                                           "eoi_token_id",
                                           "eos_token_id",
                                           "bos_token_id",
                                           "pad_token_id",
                                           "use_cache",
                                           "mm_tokens_per_image",
                                           "multimodal_projector_bias",
                                           "projector_hidden_act",
                                           "spatial_merge_size",
                                           "vision_feature_layer",
                                           "tie_word_embeddings",
                                           "_name_or_path",
                                           "auto_map"};
  return known.count(key) > 0;
}

std::string type_in(const Table& keys, const fs::path& file, const char* where) {
  const Node* type = keys.find("model_type");
  const auto* name = type ? std::get_if<std::string>(&type->value) : nullptr;
  KF_CHECK(name, Code::config, "{} has no {}model_type", file, where);
  return *name;
}

}  // namespace

TextKeys text_keys(const fs::path& file) { return text_keys(parse_json(read_input(file, Code::config), file.string()), file); }

TextKeys text_keys(const Node& json, const fs::path& file) {
  KF_CHECK(json.table(), Code::config, "{} is no JSON object", file);
  TextKeys out;
  out.type = type_in(*json.table(), file, "");
  const auto found = wrappers().find(out.type);
  if (found == wrappers().end()) {
    out.keys = *json.table();
    return out;
  }
  const Node* const text = json.table()->find("text_config");
  KF_CHECK(text && text->table(), Code::config, "{} has no text_config, where a {} model has its text model", file, out.type);
  const std::string inside = type_in(*text->table(), file, "text_config.");
  const std::vector<std::string>& allowed = found->second.inside;
  if (std::find(allowed.begin(), allowed.end(), inside) == allowed.end()) {
    out.problems.push_back(
        format("text_config.model_type = '{}' is not understood in a {} model; have: {}", inside, out.type, join(allowed, ", ")));
  }
  out.sees = true;
  out.keys = *text->table();
  for (const auto& [key, value] : found->second.usual) {
    if (out.keys.find(key) == nullptr) {
      out.keys[key] = Node(value);
    }
  }
  for (const auto& [key, value] : *json.table()) {
    if (!beside_text(key) && is_note(key, value)) {
      out.notes.push_back(key);
    } else if (!beside_text(key)) {
      out.problems.push_back(format("{} = {} is not understood", key, brief(value)));
    }
  }
  if (const Node* tied = json.table()->find("tie_word_embeddings")) {  // the class that has the head decides
    out.keys["tie_word_embeddings"] = *tied;
  }
  out.type = inside;
  return out;
}

}  // namespace kf::config::huggingface
