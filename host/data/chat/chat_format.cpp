#include "data/chat/chat_format.h"

#include <algorithm>

#include "core/error.h"
#include "core/log.h"
#include "core/text.h"

namespace kf {
namespace {

TextTemplate message_template(const std::string& pattern) {
  TextTemplate out(pattern, "data.message_format");
  for (const std::string& field : out.fields()) {
    KF_CHECK(
        field == "role" || field == "content", Code::config,
        "data.message_format = {}: {{}} is unknown; a message has {role} and {content}, and braces are doubled to stand for themselves",
        kf::quoted(pattern), field);
  }
  const auto contents = std::count_if(out.pieces().begin(), out.pieces().end(), [&](const TextTemplate::Piece& piece) {
    return piece.field != TextTemplate::kNo && out.fields()[piece.field] == "content";
  });
  KF_CHECK(contents > 0, Code::config, "data.message_format = {} has no {content}: the messages would be empty", kf::quoted(pattern));
  KF_CHECK(contents == 1, Code::config, "data.message_format = {} has {content} {} times; once is right", kf::quoted(pattern), contents);
  return out;
}

/// Appends to the last stretch where it goes on.
void add_range(std::vector<ByteRange>& ranges, ByteRange range) {
  if (range.begin == range.end) {
    return;
  }
  if (!ranges.empty() && ranges.back().end == range.begin) {
    ranges.back().end = range.end;
  } else {
    ranges.push_back(range);
  }
}

void put_written(ChatText& out, std::string_view text) {
  add_range(out.written, {out.text.size(), out.text.size() + text.size()});
  out.text += text;
}

/// Behind the last byte of `text` that the messages `first` to `last` (from 1) say; 0 where there is none.
std::size_t end_of(const jinja::Text& text, std::size_t first, std::size_t last) {
  for (std::size_t i = text.size(); i > 0; --i) {
    if (text.from[i - 1] >= first && text.from[i - 1] <= last) {
      return i;
    }
  }
  return 0;
}

/// Behind what message `message` says; where it says nothing, behind all before it.
std::size_t behind(const jinja::Text& text, std::size_t message) {
  const std::size_t own = end_of(text, message, message);
  return own > 0 || message == 0 ? own : end_of(text, 1, message);
}

/// The first byte of a message, and nothing where it says nothing.
std::optional<std::size_t> start_of(const jinja::Text& text, std::size_t message) {
  const std::size_t at = text.from.find(static_cast<jinja::Origin>(message));
  return at == std::u16string::npos ? std::nullopt : std::optional(at);
}

}  // namespace

void ChatText::clear() {
  text.clear();
  written.clear();
  counted.clear();
}

ChatFormat::ChatFormat(ChatOptions options) : options_(std::move(options)) {
  if (!options_.chat_template) {
    format_.emplace(message_template(options_.message_format));
    return;
  }
  try {
    template_.emplace(*options_.chat_template);
  } catch (Error& error) {
    throw error.context("in the chat template of " + options_.template_name);
  }
}

bool ChatFormat::is_answer(std::string_view role) const {
  return std::find(options_.answer_roles.begin(), options_.answer_roles.end(), role) != options_.answer_roles.end();
}

void ChatFormat::write_message(const Message& message, ChatText& out, std::size_t& content) const {
  for (const TextTemplate::Piece& piece : format_->pieces()) {
    if (piece.field == TextTemplate::kNo) {
      put_written(out, piece.text);
      continue;
    }
    const bool role = format_->fields()[piece.field] == "role";
    const std::string_view value = role ? message.role : message.content;
    if (!piece.optional || !value.empty()) {
      put_written(out, piece.text);
    }
    if (role) {
      out.text += value;
      continue;
    }
    content = out.text.size();
    out.text += value;
    if (!message.tool_calls.empty() && options_.tool_calls == ChatOptions::ToolCalls::json) {
      out.text += value.empty() ? "" : "\n";
      out.text += message.tool_calls;
    }
  }
}

void ChatFormat::write(std::span<const Message> messages, std::size_t first_learned, bool ask, ChatText& out) const {
  if (is_template()) {
    RichChat chat;
    for (const Message& message : messages) {
      const auto origin = static_cast<jinja::Origin>(chat.messages.size() + 1);
      jinja::Dict entry;
      entry.put("role", jinja::Value::text(message.role, kNoMessage));
      entry.put("content", jinja::Value::text(message.content, origin));
      chat.messages.emplace_back(std::move(entry));
    }
    write(chat, first_learned, ask, out);
    return;
  }
  out.clear();
  for (std::size_t i = 0; i < messages.size(); ++i) {
    const Message& message = messages[i];
    if (!message.tool_calls.empty() && options_.tool_calls != ChatOptions::ToolCalls::json) {
      KF_CHECK(options_.tool_calls == ChatOptions::ToolCalls::drop, Code::data,
               "message {} calls tools, and data.tool_calls = \"error\"; \"json\" writes the calls, \"drop\" leaves them out, a "
               "data.chat_template writes them its own way",
               i);
      ++dropped_;
    }
    std::size_t content = 0;
    write_message(message, out, content);
    if (i >= first_learned && is_answer(message.role)) {
      add_range(out.counted, {content, out.text.size()});
    }
  }
  if (ask) {
    const std::string role = options_.answer_roles.empty() ? "assistant" : options_.answer_roles.front();
    std::size_t content = 0;
    write_message({role, ""}, out, content);
    out.text.resize(content);
    while (!out.written.empty() && out.written.back().end > content) {
      out.written.back().end = content;
      if (out.written.back().begin >= content) {
        out.written.pop_back();
      }
    }
    return;
  }
  const TextTemplate::Piece& last = format_->pieces().back();
  if (!messages.empty() && last.field == TextTemplate::kNo && last.text.ends_with('\n')) {
    out.text.pop_back();
    for (std::vector<ByteRange>* ranges : {&out.written, &out.counted}) {
      if (!ranges->empty()) {
        ranges->back().end = std::min(ranges->back().end, out.text.size());
        if (ranges->back().begin == ranges->back().end) {
          ranges->pop_back();
        }
      }
    }
  }
}

jinja::Rendered ChatFormat::render(const RichChat& chat, std::size_t messages, bool ask) const {
  jinja::Dict variables = options_.variables;
  variables.put("messages", jinja::List(chat.messages.begin(), chat.messages.begin() + static_cast<std::ptrdiff_t>(messages)));
  variables.put("tools", chat.tools);
  variables.put("documents", jinja::None{});
  variables.put("add_generation_prompt", ask);
  try {
    return template_->render(variables);
  } catch (Error& error) {
    throw error.context("in the chat template of " + options_.template_name);
  }
}

void ChatFormat::write(const RichChat& chat, std::size_t first_learned, bool ask, ChatText& out) const {
  out.clear();
  KF_CHECK(chat.messages.size() < 0xffff, Code::data, "a chat of {} messages; {} are the most", chat.messages.size(), 0xfffe);
  const jinja::Rendered rendered = render(chat, chat.messages.size(), ask);
  const jinja::Text& text = rendered.text;
  std::size_t size = text.size();
  while (!ask && size > 0 && text.from[size - 1] == 0 && text.bytes[size - 1] == '\n') {
    --size;  // a line break at the end stands between messages only, as with data.message_format
  }
  out.text = text.bytes.substr(0, size);
  for (std::size_t i = 0; i < size;) {
    const std::size_t end = std::min(size, text.from.find_first_not_of(text.from[i], i));
    if (text.from[i] == 0) {
      add_range(out.written, {i, end});
    }
    i = end;
  }
  if (template_->marks_generation()) {
    for (const ByteRange& range : rendered.generation) {
      add_range(out.counted, {std::min(range.begin, size), std::min(range.end, size)});
    }
  } else {
    count_answers(chat, first_learned, text, out);
  }
}

/// Where answers stand in a template's text. An answer begins behind what the template writes when it is asked for one, and ends with what
/// it writes behind the last message of a chat: both are found at the messages that they belong to, since templates write earlier messages
/// differently when more follow (without their thoughts, say).
void ChatFormat::count_answers(const RichChat& chat, std::size_t first_learned, const jinja::Text& text, ChatText& out) const {
  for (std::size_t i = first_learned; i < chat.messages.size(); ++i) {
    const jinja::Dict* const message = chat.messages[i].dict();
    const jinja::Value* const role = message == nullptr ? nullptr : message->find("role");
    if (role == nullptr || role->text() == nullptr || !is_answer(role->text()->bytes)) {
      continue;
    }
    const jinja::Text asked = render(chat, i, true).text;
    const std::string_view head = std::string_view(asked.bytes).substr(i == 0 ? 0 : behind(asked, i));
    const jinja::Text until = render(chat, i + 1, false).text;
    const std::string_view tail = std::string_view(until.bytes).substr(behind(until, i + 1));
    const std::size_t before = i == 0 ? 0 : behind(text, i);
    const bool as_asked = std::string_view(text.bytes).substr(before).starts_with(head);
    const std::size_t begin = as_asked ? before + head.size() : start_of(text, i + 1).value_or(text.size());
    std::size_t end = std::max(end_of(text, i + 1, i + 1), begin);
    if (std::string_view(text.bytes).substr(end).starts_with(tail)) {
      end += tail.size();
    }
    add_range(out.counted, {std::min(begin, out.text.size()), std::min(end, out.text.size())});
  }
}

std::string ChatFormat::behind_answer() const {
  const std::string role = options_.answer_roles.empty() ? "assistant" : options_.answer_roles.front();
  const Message messages[] = {{"user", "x"}, {role, "x"}};
  ChatText out;
  write(messages, 1, false, out);
  const std::size_t begin = out.written.empty() ? out.text.size() : out.written.back().begin;
  return out.written.empty() || out.written.back().end != out.text.size() ? "" : out.text.substr(begin);
}

std::string ChatFormat::source() const { return is_template() ? *options_.chat_template : options_.message_format; }

}  // namespace kf
