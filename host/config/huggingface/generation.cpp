#include "config/huggingface/generation.h"

#include <algorithm>
#include <initializer_list>
#include <optional>
#include <string_view>

#include "config/huggingface/huggingface.h"
#include "config/tree/json.h"
#include "core/error.h"
#include "core/input_file.h"
#include "core/text.h"

namespace kf::config {
namespace {

constexpr const char* kFile = "generation_config.json";

/// The ids of `eos_token_id`; nothing where the file has none, or null.
std::vector<std::int64_t> ends_of(const Table& file, const std::string& name) {
  const Node* const node = file.find("eos_token_id");
  if (node == nullptr || node->is_null()) {
    return {};
  }
  const Array items = node->array() != nullptr ? *node->array() : Array{*node};
  std::vector<std::int64_t> out;
  for (const Node& item : items) {
    const auto* const id = std::get_if<std::int64_t>(&item.value);
    KF_CHECK(id != nullptr && *id >= 0, Code::config, "{}: eos_token_id must be an id, or a list of ids, from 0 on, got {}", name,
             brief(*node));
    out.push_back(*id);
  }
  return out;
}

std::optional<double> number_of(const Node& node) {
  if (const auto* const integer = std::get_if<std::int64_t>(&node.value)) {
    return static_cast<double>(*integer);
  }
  const auto* const real = std::get_if<double>(&node.value);
  return real != nullptr ? std::optional(*real) : std::nullopt;
}

/// A number of the file that has a key of [generate] by the same name.
struct Known {
  const char* name;
  double min, max;
  bool above;  // min itself is out
  bool whole;
};
constexpr Known kKnown[] = {{"temperature", 0, 1e300, false, false},
                            {"top_k", 0, 1e9, false, true},
                            {"top_p", 0, 1, false, false},
                            {"min_p", 0, 1, false, false},
                            {"repetition_penalty", 0, 1e300, true, false},
                            {"max_new_tokens", 1, 1e9, false, true}};

bool fits(const Known& known, const Node& node) {
  const std::optional<double> value = number_of(node);
  const bool whole = std::holds_alternative<std::int64_t>(node.value);
  return value && *value >= known.min && *value <= known.max && !(known.above && *value == known.min) && (whole || !known.whole);
}

/// Settings of transformers' generate that change its answers when they are not at the value given here.
bool changes_answers(const std::string& key, const Node& node) {
  const std::optional<double> value = number_of(node);
  const auto* const flag = std::get_if<bool>(&node.value);
  for (const char* beams : {"num_beams", "num_beam_groups", "encoder_repetition_penalty", "typical_p", "guidance_scale", "top_h"}) {
    if (key == beams) {
      return value != 1;
    }
  }
  for (const char* off : {"no_repeat_ngram_size", "encoder_no_repeat_ngram_size", "min_length", "min_new_tokens", "epsilon_cutoff",
                          "eta_cutoff", "penalty_alpha"}) {
    if (key == off) {
      return value != 0;
    }
  }
  for (const char* lists :
       {"bad_words_ids", "force_words_ids", "constraints", "suppress_tokens", "begin_suppress_tokens", "forced_bos_token_id",
        "forced_eos_token_id", "sequence_bias", "exponential_decay_length_penalty", "watermarking_config", "stop_strings"}) {
    if (key == lists) {
      return !(node.array() != nullptr && node.array()->empty());
    }
  }
  return key == "token_healing" && flag != nullptr && *flag;
}

Node from(const fs::path& file, Node value) {
  value.origin = {Origin::Kind::recipe, file.string(), 0, 0, {}};
  return value;
}

void read_sampling(const Table& json, const fs::path& file, GenerationFile& out) {
  for (const auto& [key, node] : json) {
    const auto* const known =
        std::find_if(std::begin(kKnown), std::end(kKnown), [&name = key](const Known& one) { return name == one.name; });
    if (node.is_null()) {
      continue;
    }
    if (known == std::end(kKnown)) {
      if (changes_answers(key, node)) {
        out.unfollowed.push_back(key);
      }
    } else if (fits(*known, node)) {
      out.generate[key] = from(file, Node(node.value));
    } else {
      out.unfollowed.push_back(format("{} ({})", key, brief(node)));
    }
  }
  const Node* const sample = json.find("do_sample");
  const auto* const draws = sample != nullptr ? std::get_if<bool>(&sample->value) : nullptr;
  if (draws != nullptr && !*draws) {
    for (const char* key : {"top_k", "top_p", "min_p"}) {
      out.generate.erase(key);
    }
    out.generate["temperature"] = from(file, Node(0.0));
  }
}

}  // namespace

GenerationFile read_generation_file(const fs::path& folder) {
  GenerationFile out;
  const fs::path file = folder / kFile;
  if (fs::exists(file)) {
    const Node json = [&] {
      try {
        return parse_json(read_input(file, Code::config), file.string());
      } catch (const Error& error) {
        fail(Code::config, "{}", error.what());
      }
    }();
    KF_CHECK(json.table() != nullptr, Code::config, "{}: expected an object", file);
    out.ends = ends_of(*json.table(), file.string());
    out.ends_from = kFile;
    read_sampling(*json.table(), file, out);
  }
  if (out.ends.empty() && is_huggingface_folder(folder)) {
    const fs::path config = folder / "config.json";
    const Node json = parse_json(read_input(config, Code::config), config.string());
    out.ends = ends_of(json.table() != nullptr ? *json.table() : Table(), config.string());
    if (out.ends.empty()) {  // of models that also see
      out.ends = ends_of(text_config_of(config), config.string());
    }
    out.ends_from = "config.json";
  }
  return out;
}

}  // namespace kf::config
