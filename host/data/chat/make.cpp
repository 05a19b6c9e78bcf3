#include "config/schema/config.h"
#include "core/error.h"
#include "core/fs.h"
#include "core/input_file.h"
#include "data/chat/chat_format.h"
#include "data/hub/model.h"
#include "data/template/values.h"
#include "data/tokenizer/json.h"
#include "data/tokenizer/tokenizer.h"

namespace kf {
namespace {

ChatOptions::ToolCalls tool_calls_named(const std::string& word) {
  return word == "json" ? ChatOptions::ToolCalls::json : word == "error" ? ChatOptions::ToolCalls::error : ChatOptions::ToolCalls::drop;
}

/// bos_token and its like, as tokenizer_config.json spells them.
void put_token_names(const fs::path& file, jinja::Dict& variables) {
  std::error_code ignored;
  if (!fs::exists(file, ignored)) {
    return;
  }
  const json::Value root = json::parse(read_input(file, Code::data), file.string());
  for (const json::Value::Member& member : json::Place(root, file.string() + ": ").as_object()) {
    const json::Value* const content = member.second.find("content");
    const json::Value& name = content != nullptr ? *content : member.second;
    if (member.first.ends_with("_token") && name.type == json::Value::Type::string) {
      variables.put(member.first, jinja::Value::text(name.text));
    }
  }
}

jinja::Dict variables_of(const config::DataConfig& data, const Tokenizer* tokenizer) {
  jinja::Dict out;
  if (!data.tokenizer_path.empty()) {
    const fs::path path = hub::locate(data.tokenizer_path, hub::ModelFiles::tokenizer);
    std::error_code ignored;
    put_token_names((fs::is_directory(path, ignored) ? path : path.parent_path()) / "tokenizer_config.json", out);
  }
  const auto put = [&](const char* name, const std::optional<std::int64_t>& id) {
    if (id && out.find(name) == nullptr) {
      if (const std::optional<std::string> token = tokenizer->token(*id)) {
        out.put(name, jinja::Value::text(*token));
      }
    }
  };
  if (tokenizer != nullptr) {
    put("bos_token", tokenizer->bos_id());
    put("eos_token", tokenizer->eos_id());
    put("pad_token", tokenizer->pad_id());
  }
  if (!data.chat_template_args.empty()) {
    const jinja::Value given = jinja::parse_value(data.chat_template_args, "data.chat_template_args");
    KF_CHECK(given.dict() != nullptr, Code::config, "data.chat_template_args = {} is {}, not a JSON object",
             kf::quoted(data.chat_template_args), given.kind());
    for (const jinja::Pair& item : given.dict()->items) {
      out.set(item.first, item.second);
    }
  }
  return out;
}

}  // namespace

std::shared_ptr<const ChatFormat> make_chat_format(const config::DataConfig& data, const Tokenizer* tokenizer) {
  ChatOptions options;
  options.message_format = data.message_format;
  options.answer_roles = data.answer_roles;
  options.tool_calls = tool_calls_named(data.tool_calls);
  if (!data.chat_template.empty()) {
    FoundTemplate found = find_chat_template(data.chat_template, data.tokenizer_path);
    options.chat_template = std::move(found.source);
    options.template_name = std::move(found.name);
    options.variables = variables_of(data, tokenizer);
  }
  return std::make_shared<const ChatFormat>(std::move(options));
}

}  // namespace kf
