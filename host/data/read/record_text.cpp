#include "data/read/record_text.h"

#include <algorithm>

#include "core/text.h"

namespace kf {
namespace {

/// The prompts of Alpaca, which other data sets of its kind share: with an input and without.
constexpr const char* kAlpaca =
    "Below is an instruction that describes a task, paired with an input that provides further context. Write a response that "
    "appropriately "
    "completes the request.\n\n### Instruction:\n{instruction}\n\n### Input:\n{input?}\n\n### Response:\n";
constexpr const char* kAlpacaWithoutInput =
    "Below is an instruction that describes a task. Write a response that appropriately completes the request.\n\n### "
    "Instruction:\n{instruction}\n\n### Response:\n";
/// The same as a message of a chat.
constexpr const char* kAlpacaMessage = "{instruction}{input?\n\n}";

}  // namespace

RecordText::RecordText(const ReadOptions& options) : options_(options), format_(options.chat) {
  if (!options.messages_field.empty()) {
    shape_ = Shape::chat;
    fields_ = {options.messages_field};
    keys_ = {"data.messages_field"};
    optional_ = {false};
  } else if (!options.completion_field.empty()) {
    shape_ = Shape::pair;
    take_pair();
  } else {
    KF_CHECK(!options.answers_only, Code::config,
             "data.loss_on = \"answers\" is about chats and completions: set data.messages_field, or data.prompt_field and "
             "data.completion_field");
    if (!options.text_template.empty()) {
      shape_ = Shape::fields;
      keys_ = {"data.text_template"};
      take_template(options.text_template);
    } else {
      fields_ = {options.text_field};
      keys_ = {options.text_field_key};
      optional_ = {false};
    }
  }
  if (!format_ && (chat() || shape_ == Shape::pair)) {
    ChatOptions chat_options;
    chat_options.message_format = options.message_format;
    format_ = std::make_shared<const ChatFormat>(std::move(chat_options));
  }
  if (chat() && format_->is_template() && !options.tools_field.empty()) {
    fields_.push_back(options.tools_field);
    keys_.emplace_back("data.tools_field");
    optional_.push_back(true);
  }
}

void RecordText::take_template(const std::string& pattern) {
  const std::string key = keys_.front();
  template_.emplace(pattern, key);
  fields_ = template_->fields();
  KF_CHECK(!fields_.empty(), Code::config, "{} = {} names no field: every document would be the same", key, kf::quoted(pattern));
  keys_.assign(fields_.size(), key);
  for (std::size_t i = 0; i < fields_.size(); ++i) {
    optional_.push_back(template_->optional(i));
  }
}

void RecordText::take_pair() {
  KF_CHECK(options_.prompt_field.empty() != options_.prompt_template.empty(), Code::config,
           "data.completion_field = {} answers a prompt: set data.prompt_field or data.prompt_template, one of them",
           kf::quoted(options_.completion_field));
  if (options_.prompt_template.empty()) {
    fields_ = {options_.prompt_field};
    keys_ = {"data.prompt_field"};
    optional_ = {false};
  } else {
    keys_ = {"data.prompt_template"};
    const bool alpaca = options_.prompt_template == "alpaca";
    take_template(!alpaca ? options_.prompt_template : options_.prompt_as_chat ? kAlpacaMessage : kAlpaca);
    if (alpaca && !options_.prompt_as_chat) {
      without_input_.emplace(kAlpacaWithoutInput, keys_.front());
    }
  }
  fields_.push_back(options_.completion_field);
  keys_.emplace_back("data.completion_field");
  optional_.push_back(false);
}

bool RecordText::nested() const {
  return chat() || shape_ == Shape::pair ||
         std::any_of(fields_.begin(), fields_.end(), [](const std::string& field) { return field.find('.') != std::string::npos; });
}

std::string RecordText::describe(std::size_t field) const {
  const char* const what = chat() ? "messages field" : shape_ == Shape::text ? "text field" : "field";
  return format("{} {} ({})", what, kf::quoted(fields_.at(field)), keys_.at(field));
}

void RecordText::put_template(std::span<const std::string_view> values) {
  const auto empty_input = [&] {
    const auto at = std::find(template_->fields().begin(), template_->fields().end(), "input");
    return values[static_cast<std::size_t>(at - template_->fields().begin())].empty();
  };
  const TextTemplate& used = without_input_ && empty_input() ? *without_input_ : *template_;
  text_.clear();
  for (const TextTemplate::Piece& piece : used.pieces()) {
    const std::string_view value = piece.field == TextTemplate::kNo ? std::string_view() : values[piece.field];
    const bool written = piece.field == TextTemplate::kNo || (piece.optional && !value.empty());
    if (written && !piece.text.empty()) {
      text_.written.push_back({text_.text.size(), text_.text.size() + piece.text.size()});
      text_.text += piece.text;
    }
    text_.text += value;
  }
}

void RecordText::finish(Record& record) const {
  record.text = text_.text;
  record.written = text_.written;
  record.masked = options_.answers_only;
  record.counted.clear();
  if (options_.answers_only) {
    record.counted = text_.counted;
  }
}

std::string_view RecordText::prompt_of(std::span<const std::string_view> values) {
  if (!template_) {
    return values.front();
  }
  put_template(values);
  prompt_ = text_.text;
  return prompt_;
}

void RecordText::from_fields(std::span<const std::string_view> values, Record& record) {
  if (shape_ == Shape::text) {
    record.masked = false;
    record.counted.clear();
    record.written.clear();
    record.text = values.front();
    return;
  }
  if (shape_ == Shape::pair && options_.prompt_as_chat) {
    const Message messages[] = {{"user", prompt_of(values)}, {"assistant", values.back()}};
    from_messages(messages, 1, record);
    return;
  }
  if (template_) {
    put_template(values);
  } else {
    text_.clear();
    text_.text = values.front();
  }
  if (shape_ == Shape::pair) {
    const std::size_t begin = text_.text.size();
    text_.text += values.back();
    text_.counted = {{begin, text_.text.size()}};
  }
  finish(record);
}

void RecordText::from_messages(std::span<const Message> messages, std::size_t first_learned, Record& record) {
  format_->write(messages, first_learned, options_.ask, text_);
  finish(record);
}

void RecordText::from_messages(const RichChat& chat, std::size_t first_learned, Record& record) {
  format_->write(chat, first_learned, options_.ask, text_);
  finish(record);
}

}  // namespace kf
