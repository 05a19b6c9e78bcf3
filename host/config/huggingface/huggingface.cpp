#include "config/huggingface/huggingface.h"

#include <set>

#include "config/huggingface/common.h"
#include "config/huggingface/defaults.h"
#include "config/huggingface/families.h"
#include "config/huggingface/text_keys.h"
#include "config/tree/json.h"
#include "core/input_file.h"
#include "core/text.h"

namespace kf::config {
namespace {

/// Most classes give their embedding a padding_idx: that row takes no gradient.
void take_pad(huggingface::Reader& c, const Table& json, const std::string& type) {
  static const std::set<std::string> without{"bloom", "falcon", "gpt2", "gpt_bigcode", "gpt_neo", "gpt_neox", "gptj", "mpt"};
  const Node* const node = json.find("pad_token_id");
  const auto* const id = node ? std::get_if<std::int64_t>(&node->value) : nullptr;
  const Node* const rows = c.model().find("vocab_size");
  if (id != nullptr && rows != nullptr && *id >= 0 && *id < std::get<std::int64_t>(rows->value) && without.count(type) == 0) {
    c.set("pad_id", *id);
  }
}

/// Below 0 there is no window; families take 0 and null for none.
void refuse_negative_windows(huggingface::Reader& c, const Table& json) {
  for (const char* key : {"sliding_window", "window_size", "attention_chunk_size"}) {
    const Node* const node = json.find(key);
    const auto* const size = node != nullptr ? std::get_if<std::int64_t>(&node->value) : nullptr;
    if (size != nullptr && *size < 0) {
      c.problem(format("{} = {} is not understood; it must be at least 0", key, *size));
    }
  }
}

/// Classes that divide the chosen weights by their sum give a single expert the weight 1; ours keeps its score.
void refuse_single_expert(huggingface::Reader& c) {
  const auto is = [&](const char* key, const Node& value) {
    const Node* const node = c.model().find(key);
    return node != nullptr && *node == value;
  };
  const bool normalised = is("moe_router", Node(std::string("softmax_topk"))) || is("moe_router", Node(std::string("sigmoid"))) ||
                          is("moe_norm_topk", Node(true));
  if (normalised && is("moe_top_k", Node(std::int64_t{1})) && !is("moe_weight_on_input", Node(true))) {
    c.problem("one expert a token is not understood: the class divides its weight by itself, so that the router would never learn");
  }
}

}  // namespace

bool is_huggingface_folder(const fs::path& path) {
  std::error_code ignored;
  return fs::is_regular_file(path / "config.json", ignored);
}

std::string model_type_of(const fs::path& file) { return huggingface::text_keys(file).type; }

Table text_config_of(const fs::path& file) { return huggingface::text_keys(file).keys; }

Table model_of_config_json(const fs::path& file, std::vector<std::string>& problems, std::vector<std::string>* warnings) {
  return model_of_config_json(parse_json(read_input(file, Code::config), file.string()), file, problems, warnings);
}

Table model_of_config_json(const Node& json, const fs::path& file, std::vector<std::string>& problems, std::vector<std::string>* warnings) {
  huggingface::TextKeys part = huggingface::text_keys(json, file);
  const std::string& type = part.type;
  for (const std::string& problem : part.problems) {
    problems.push_back(format("{}: {}", file, problem));
  }
  const huggingface::Family family = huggingface::find_family(type);
  if (!family) {
    const std::string near = nearest(type, huggingface::family_names());
    problems.push_back(format("{}: the model_type '{}' is not understood{}; have: {}", file, type,
                              near.empty() ? "" : "; did you mean '" + near + "'?", join(huggingface::family_names(), ", ")));
    return {};
  }
  huggingface::add_class_defaults(type, part.keys);
  huggingface::Reader reader(part.keys);
  huggingface::ignore_bookkeeping(reader);
  family(reader);
  take_pad(reader, part.keys, type);
  refuse_single_expert(reader);
  refuse_negative_windows(reader, part.keys);
  for (const std::string& problem : reader.problems()) {
    problems.push_back(format("{}: {} (model_type {})", file, problem, type));
  }
  std::vector<std::string> notes = reader.notes();
  notes.insert(notes.begin(), part.notes.begin(), part.notes.end());
  if (warnings != nullptr && !notes.empty()) {
    warnings->push_back(format("{}: passed over what changes no number of a {} model: {}", file, type, join(notes, ", ")));
  }
  Table model = reader.model();
  for (auto& [key, node] : model) {
    node.origin = Origin{Origin::Kind::preset, file.string(), 0, 0, ""};
  }
  return model;
}

}  // namespace kf::config
