#pragma once
// Chats as text: by data.message_format or by a chat template. Training and generation write them with the same function.
//
// What the format wrote and what people said stay apart: names of special tokens in the first are the tokens (ChatText::written), in the
// second they are text, so that nobody ends a turn, or begins one in another's name, by what he writes.

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/byte_range.h"
#include "data/chat/text_template.h"
#include "data/template/template.h"

namespace kf {

namespace config {
struct DataConfig;
}
class Tokenizer;

/// What somebody says in a chat.
struct Message {
  std::string_view role;
  std::string_view content;
  std::string_view tool_calls = {};  // JSON, an object a line: {"name": ..., "arguments": ...}; "" for none
};

/// A chat as text.
struct ChatText {
  std::string text;
  std::vector<ByteRange> written;  // rising: by the format, not by who speaks
  std::vector<ByteRange> counted;  // rising, not touching: answers, each to the end of its message
  void clear();
};

/// The origin of texts that come with a chat and are nothing that a message says: roles, tools.
inline constexpr jinja::Origin kNoMessage = 0xffff;

/// A chat whose messages have more than a role and a content. The origin of what message i says is i + 1.
struct RichChat {
  jinja::List messages;
  jinja::Value tools = jinja::None{};
};

struct ChatOptions {
  std::string message_format = "{role}: {content}\n";
  std::vector<std::string> answer_roles = {"assistant"};
  enum class ToolCalls { drop, json, error };
  ToolCalls tool_calls = ToolCalls::drop;
  /// A chat template instead of message_format, and where it stands, for messages.
  std::optional<std::string> chat_template;
  std::string template_name = {};
  /// Variables of the template: bos_token and its like, and data.chat_template_args.
  jinja::Dict variables = {};
};

class ChatFormat {
 public:
  /// Throws Code::config for a format or template that makes no sense.
  explicit ChatFormat(ChatOptions options);

  bool is_template() const { return template_.has_value(); }
  bool is_answer(std::string_view role) const;

  /// The whole chat. What counts are the answers among the messages from `first_learned` on. With `ask` the text ends where an answer is to
  /// begin; else a line break at the end of the format stands between messages only. Throws Code::data for messages that the format
  /// refuses.
  void write(std::span<const Message> messages, std::size_t first_learned, bool ask, ChatText& out) const;
  /// The same for a template.
  void write(const RichChat& chat, std::size_t first_learned, bool ask, ChatText& out) const;

  /// What stands behind an answer: where generation of one ends.
  std::string behind_answer() const;
  /// Text of the format itself, for what must hold of it: its literal parts, or the template.
  std::string source() const;
  /// Tool calls that data.tool_calls = "drop" left out so far.
  std::int64_t dropped_calls() const { return dropped_.load(); }

 private:
  void write_message(const Message& message, ChatText& out, std::size_t& content) const;
  void count_answers(const RichChat& chat, std::size_t first_learned, const jinja::Text& text, ChatText& out) const;
  jinja::Rendered render(const RichChat& chat, std::size_t messages, bool ask) const;

  ChatOptions options_;
  std::optional<TextTemplate> format_;
  std::optional<jinja::Template> template_;
  mutable std::atomic<std::int64_t> dropped_{0};
};

/// By [data]. `tokenizer` tells the names of special tokens that a template may ask for; null where there is none.
std::shared_ptr<const ChatFormat> make_chat_format(const config::DataConfig& data, const Tokenizer* tokenizer);

/// The template that `choice` (data.chat_template) names: "tokenizer" or "tokenizer:NAME" by the files beside the tokenizer at
/// `tokenizer_path`, else a file. Throws Code::config or Code::data.
struct FoundTemplate {
  std::string source;
  std::string name;  // "models/x/tokenizer_config.json"
};
FoundTemplate find_chat_template(const std::string& choice, const std::string& tokenizer_path);

}  // namespace kf
