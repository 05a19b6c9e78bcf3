#include "generate/chat_prompts.h"

#include <algorithm>

#include "config/schema/config.h"
#include "core/error.h"
#include "data/file/lines.h"
#include "data/read/json_record.h"
#include "data/read/settings.h"
#include "data/tokenizer/json.h"

namespace kf {
namespace {

/// data.chat_template, or what stands for it where the job does not say how chats are written.
std::string template_choice(const config::DataConfig& data, bool foreign) {
  const config::DataConfig usual;
  const bool says = !data.chat_template.empty() || reads_chats(data) || data.message_format != usual.message_format;
  if (says && !foreign) {
    return data.chat_template;
  }
  if (foreign) {
    return data.chat_template.empty() && data.message_format == usual.message_format ? "tokenizer" : data.chat_template;
  }
  try {
    find_chat_template("tokenizer", data.tokenizer_path);
    return "tokenizer";
  } catch (const Error&) {  // there is none: the format serves
    return "";
  }
}

}  // namespace

bool reads_chats(const config::DataConfig& data) {
  return !data.messages_field.empty() || std::any_of(data.datasets.begin(), data.datasets.end(), [](const config::DatasetSource& source) {
    return !source.messages_field.value_or("").empty();
  });
}

ChatPrompts::ChatPrompts(const config::DataConfig& data, const Tokenizer& tokenizer, bool foreign) : tokenizer_(tokenizer) {
  config::DataConfig how = data;
  how.chat_template = template_choice(data, foreign);
  options_ = read_options(data);
  options_.text_template.clear();
  options_.completion_field.clear();
  options_.answers_only = false;
  options_.messages_field = "messages";
  options_.chat = make_chat_format(how, &tokenizer);
  options_.ask = true;
  description_ = options_.chat->is_template() ? "the template of " + find_chat_template(how.chat_template, how.tokenizer_path).name
                                              : "data.message_format = " + kf::quoted(how.message_format);
}

ChatPrompts::Written ChatPrompts::write(const std::string& json, const std::string& place) const {
  std::string padded = json;
  padded.append(Lines::kPadding, ' ');
  JsonRecord reader(options_);
  Record record;
  reader.read(std::string_view(padded).substr(0, json.size()), record, [&] { return place; });
  return {std::string(record.text), record.written};
}

std::string ChatPrompts::text(const std::string& json, const std::string& place) const { return write(json, place).text; }

std::vector<std::int64_t> ChatPrompts::ids(const std::string& json, const std::string& place, bool bos) const {
  const Written chat = write(json, place);
  EncodeOptions options;
  options.written = chat.written;
  std::vector<std::uint32_t> narrow;
  tokenizer_.append(chat.text, narrow, options);
  std::vector<std::int64_t> out(narrow.begin(), narrow.end());
  const std::optional<std::int64_t> first = tokenizer_.bos_id();
  if (bos && first && (out.empty() || out.front() != *first)) {
    out.insert(out.begin(), *first);
  }
  KF_CHECK(!out.empty(), Code::data, "{}: the chat is empty", place);
  return out;
}

std::string ChatPrompts::of_user(const std::string& system, const std::string& said) {
  const auto message = [](const char* role, const std::string& content) {
    return format("{\"role\": \"{}\", \"content\": {}}", role, json::quote(content));
  };
  return "{\"messages\": [" + (system.empty() ? "" : message("system", system) + ", ") + message("user", said) + "]}";
}

std::vector<std::int64_t> ChatPrompts::ends() const {
  const std::string behind = options_.chat->behind_answer();
  const std::vector<ByteRange> all{{0, behind.size()}};
  EncodeOptions options;
  options.written = all;
  std::vector<std::uint32_t> ids;
  tokenizer_.append(behind, ids, options);
  for (const std::uint32_t id : ids) {
    const std::int64_t one[] = {id};
    if (tokenizer_.decode(one).empty()) {
      return {id};
    }
    if (tokenizer_.decode(one).find_first_not_of(" \n") != std::string::npos) {
      break;  // words stand before it: an answer does not end with a token
    }
  }
  return {};
}

}  // namespace kf
