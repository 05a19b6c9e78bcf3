#include "config/huggingface/huggingface.h"

#include <set>

#include "config/huggingface/common.h"
#include "config/huggingface/families.h"
#include "config/json.h"
#include "core/error.h"
#include "core/text.h"

namespace kf::config {
namespace {

Node parsed(const fs::path& file) {
  Node json = parse_json(read_file(file), file.string());
  KF_CHECK(json.table(), Code::config, "{} is no JSON object", file);
  return json;
}

std::string type_in(const Node& json, const fs::path& file) {
  const Node* type = json.table()->find("model_type");
  const auto* name = type ? std::get_if<std::string>(&type->value) : nullptr;
  KF_CHECK(name, Code::config, "{} has no model_type", file);
  return *name;
}

/// Most classes give their embedding a padding_idx: that row takes no gradient.
void take_pad(huggingface::Reader& c, const Table& json, const std::string& type) {
  static const std::set<std::string> without{"bloom", "falcon", "gpt2", "gpt_bigcode", "gpt_neox", "gptj"};
  const Node* const node = json.find("pad_token_id");
  const auto* const id = node ? std::get_if<std::int64_t>(&node->value) : nullptr;
  const Node* const rows = c.model().find("vocab_size");
  if (id != nullptr && rows != nullptr && *id >= 0 && *id < std::get<std::int64_t>(rows->value) && without.count(type) == 0) {
    c.set("pad_id", *id);
  }
}

}  // namespace

bool is_huggingface_folder(const fs::path& path) {
  std::error_code ignored;
  return fs::is_regular_file(path / "config.json", ignored);
}

std::string model_type_of(const fs::path& file) { return type_in(parsed(file), file); }

Table model_of_config_json(const fs::path& file, std::vector<std::string>& problems) {
  const Node json = parsed(file);
  const std::string type = type_in(json, file);
  const huggingface::Family family = huggingface::find_family(type);
  if (!family) {
    const std::string near = nearest(type, huggingface::family_names());
    problems.push_back(format("{}: the model_type '{}' is not understood{}; have: {}", file, type,
                              near.empty() ? "" : "; did you mean '" + near + "'?", join(huggingface::family_names(), ", ")));
    return {};
  }
  huggingface::Reader reader(*json.table());
  huggingface::ignore_bookkeeping(reader);
  family(reader);
  take_pad(reader, *json.table(), type);
  for (const std::string& problem : reader.problems()) {
    problems.push_back(format("{}: {} (model_type {})", file, problem, type));
  }
  Table model = reader.model();
  for (auto& [key, node] : model) {
    node.origin = Origin{Origin::Kind::preset, file.string(), 0, 0, ""};
  }
  return model;
}

}  // namespace kf::config
