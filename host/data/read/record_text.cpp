#include "data/read/record_text.h"

#include <algorithm>

#include "core/text.h"

namespace kf {
namespace {

/// Which end of a brace stands at `at`: a doubled one is the character.
bool doubled(std::string_view pattern, std::size_t at) { return at + 1 < pattern.size() && pattern[at + 1] == pattern[at]; }

TextTemplate message_template(const std::string& pattern) {
  TextTemplate out(pattern, "data.message_format");
  for (const std::string& field : out.fields()) {
    KF_CHECK(
        field == "role" || field == "content", Code::config,
        "data.message_format = {}: {{}} is unknown; a message has {role} and {content}, and braces are doubled to stand for themselves",
        kf::quoted(pattern), field);
  }
  KF_CHECK(std::count(out.fields().begin(), out.fields().end(), "content") == 1, Code::config,
           "data.message_format = {} has no {content}: the messages would be empty", kf::quoted(pattern));
  return out;
}

}  // namespace

TextTemplate::TextTemplate(std::string_view pattern, const std::string& key) {
  const auto add = [&](char c) {
    if (pieces_.empty() || pieces_.back().field != kNo) {
      pieces_.emplace_back();
    }
    pieces_.back().text += c;
  };
  for (std::size_t i = 0; i < pattern.size(); ++i) {
    const char c = pattern[i];
    if ((c == '{' || c == '}') && doubled(pattern, i)) {
      add(c);
      ++i;
    } else if (c == '{') {
      const std::size_t close = pattern.find('}', i);
      KF_CHECK(close != std::string_view::npos && close > i + 1, Code::config,
               "{} = {}: the brace at character {} {}; {name} stands for a field, {{ for a brace", key, kf::quoted(pattern), i + 1,
               close == std::string_view::npos ? "is not closed" : "holds no name");
      const std::string name(pattern.substr(i + 1, close - i - 1));
      const auto at = std::find(fields_.begin(), fields_.end(), name);
      pieces_.push_back({"", static_cast<std::size_t>(at - fields_.begin())});
      if (at == fields_.end()) {
        fields_.push_back(name);
      }
      i = close;
    } else {
      KF_CHECK(c != '}', Code::config, "{} = {}: the brace at character {} closes nothing; }} stands for a brace", key, kf::quoted(pattern),
               i + 1);
      add(c);
    }
  }
}

RecordText::RecordText(const ReadOptions& options) : key_(options.text_field_key), answers_only_(options.answers_only) {
  if (!options.messages_field.empty()) {
    chat_ = true;
    key_ = "data.messages_field";
    fields_ = {options.messages_field};
    message_ = message_template(options.message_format);
    return;
  }
  KF_CHECK(!answers_only_, Code::config,
           "data.loss_on = \"answers\" is about chats: set data.messages_field to the field with the messages");
  if (!options.text_template.empty()) {
    key_ = "data.text_template";
    template_.emplace(options.text_template, key_);
    fields_ = template_->fields();
    KF_CHECK(!fields_.empty(), Code::config, "data.text_template = {} names no field: every document would be the same",
             kf::quoted(options.text_template));
    return;
  }
  fields_ = {options.text_field};
}

std::string RecordText::describe(std::size_t field) const {
  const char* const what = chat_ ? "messages field" : template_ ? "field" : "text field";
  return format("{} {} ({})", what, kf::quoted(fields_.at(field)), key_);
}

void RecordText::from_fields(std::span<const std::string_view> values, Record& record) {
  record.masked = false;
  record.counted.clear();
  if (!template_) {
    record.text = values.front();
    return;
  }
  text_.clear();
  for (const TextTemplate::Piece& piece : template_->pieces()) {
    text_ += piece.field == TextTemplate::kNo ? std::string_view(piece.text) : values[piece.field];
  }
  record.text = text_;
}

/// What counts of an answer: from its content to the end of its message, so that the model learns to end its turn, too. A line break at the
/// end of the format stands between messages: there is none behind the last.
void RecordText::from_messages(std::span<const Message> messages, Record& record) {
  text_.clear();
  record.counted.clear();
  record.masked = answers_only_;
  for (const Message& message : messages) {
    std::size_t content = text_.size();
    for (const TextTemplate::Piece& piece : message_->pieces()) {
      if (piece.field == TextTemplate::kNo) {
        text_ += piece.text;
      } else if (message_->fields()[piece.field] == "role") {
        text_ += message.role;
      } else {
        content = text_.size();
        text_ += message.content;
      }
    }
    if (answers_only_ && message.role == "assistant") {
      if (!record.counted.empty() && record.counted.back().end == content) {
        record.counted.back().end = text_.size();
      } else {
        record.counted.push_back({content, text_.size()});
      }
    }
  }
  const TextTemplate::Piece& last = message_->pieces().back();
  if (!messages.empty() && last.field == TextTemplate::kNo && last.text.ends_with('\n')) {
    text_.pop_back();
    if (!record.counted.empty()) {
      record.counted.back().end = std::min(record.counted.back().end, text_.size());
    }
  }
  record.text = text_;
}

}  // namespace kf
