// Where chat templates stand: chat_template.jinja, chat_templates/NAME.jinja or tokenizer_config.json beside a tokenizer; or a file of
// one's own.

#include <algorithm>

#include "core/error.h"
#include "core/fs.h"
#include "core/input_file.h"
#include "data/chat/chat_format.h"
#include "data/hub/model.h"
#include "data/tokenizer/json.h"

namespace kf {
namespace {

bool is_there(const fs::path& path) {
  std::error_code ignored;
  return fs::exists(path, ignored);
}

/// "chat_template" of a JSON file: one, or several by name.
std::optional<std::string> in_json(const fs::path& file, const std::string& name, std::vector<std::string>& names) {
  if (!is_there(file)) {
    return std::nullopt;
  }
  const json::Value root = json::parse(read_input(file, Code::data), file.string());
  const json::Place place(root, file.string() + ": ");
  if (!place.has("chat_template")) {
    return std::nullopt;
  }
  const json::Place found = place.at("chat_template");
  if (found->type == json::Value::Type::string) {
    names.emplace_back("default");
    return name == "default" ? std::optional(found.as_string()) : std::nullopt;
  }
  std::optional<std::string> out;
  const auto take = [&](const std::string& each, const json::Place& text) {
    names.push_back(each);
    out = each == name ? text.as_string() : out;
  };
  if (found->type == json::Value::Type::object) {
    for (const auto& member : found.as_object()) {
      take(member.first, found.at(member.first));
    }
    return out;
  }
  for (std::size_t i = 0; i < found.size(); ++i) {
    take(found.at(i).at("name").as_string(), found.at(i).at("template"));
  }
  return out;
}

FoundTemplate beside_tokenizer(const std::string& name, const std::string& tokenizer_path) {
  KF_CHECK(!tokenizer_path.empty() && !tokenizer_path.starts_with("lua:"), Code::config,
           "data.chat_template = \"tokenizer\" takes the template that stands beside the tokenizer's files, and data.tokenizer_path {}; "
           "name the template's own file",
           tokenizer_path.empty() ? "is empty (bytes)" : "= " + kf::quoted(tokenizer_path) + " has none");
  const fs::path path = hub::locate(tokenizer_path, hub::ModelFiles::tokenizer);
  std::error_code ignored;
  const fs::path folder = fs::is_directory(path, ignored) ? path : path.parent_path();
  const fs::path own = name == "default" ? folder / "chat_template.jinja" : folder / "chat_templates" / (name + ".jinja");
  if (is_there(own)) {
    return {read_input(own, Code::data), own.string()};
  }
  std::vector<std::string> names;
  for (const char* file : {"tokenizer_config.json", "chat_template.json"}) {
    if (const std::optional<std::string> found = in_json(folder / file, name, names)) {
      return {*found, (folder / file).string()};
    }
  }
  KF_CHECK(names.empty(), Code::config, "data.chat_template: {} has no chat template called {}; have: {}", folder, kf::quoted(name),
           join(names, ", "));
  fail(Code::config,
       "{} has no chat template, neither chat_template.jinja nor chat_template in tokenizer_config.json: name a file of Jinja with "
       "data.chat_template, or use data.message_format",
       folder);
}

}  // namespace

FoundTemplate find_chat_template(const std::string& choice, const std::string& tokenizer_path) {
  constexpr std::string_view own = "tokenizer";
  if (choice == own) {
    return beside_tokenizer("default", tokenizer_path);
  }
  if (choice.starts_with(own) && choice.size() > own.size() && choice[own.size()] == ':') {
    return beside_tokenizer(choice.substr(own.size() + 1), tokenizer_path);
  }
  KF_CHECK(is_there(choice), Code::config,
           "data.chat_template = {}: no such file; \"tokenizer\" takes the template beside data.tokenizer_path", kf::quoted(choice));
  return {read_input(choice, Code::data), choice};
}

}  // namespace kf
