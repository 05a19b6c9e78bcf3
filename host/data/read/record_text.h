#pragma once
// From the fields of a record to its text: one field, a template of several, a prompt and what completes it, or the messages of a chat.

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/error.h"
#include "data/chat/chat_format.h"
#include "data/chat/text_template.h"
#include "data/read/reader.h"

namespace kf {

/// A record that cannot be read, while those behind it can: what data.on_error = "skip" leaves out.
class BrokenRecord : public Error {
 public:
  explicit BrokenRecord(std::string message) : Error(Code::data, std::move(message)) {}
};

/// Builds records. One a reader: it holds the text of the last record.
class RecordText {
 public:
  /// Throws Code::config for templates and formats that make no sense.
  explicit RecordText(const ReadOptions& options);

  enum class Shape { text, fields, pair, chat };
  Shape shape() const { return shape_; }
  bool chat() const { return shape_ == Shape::chat; }
  /// Whether some field may be more than a text: a list of messages, or a path into objects.
  bool nested() const;
  /// The fields of a record, in the order in which `from_fields` takes them: of a pair those of its prompt, then the completion; of a chat
  /// the one with its messages, and its tools where a template takes them.
  const std::vector<std::string>& fields() const { return fields_; }
  /// Whether a record may lack the field, which then is "".
  bool optional(std::size_t field) const { return optional_.at(field); }
  /// Whether fields must be strings; in a template numbers and booleans are printed as well.
  bool strings_only() const { return !template_; }
  /// "the text field "text" (data.hf_dataset_text_field)", for messages.
  std::string describe(std::size_t field) const;
  /// How a message of a chat is read, and written.
  const ReadOptions& options() const { return options_; }
  const ChatFormat& writer() const { return *format_; }

  /// The values stay the caller's until the record is used up. All are valid UTF-8. Not for chats.
  void from_fields(std::span<const std::string_view> values, Record& record);
  /// The prompt that a pair's fields (all but the completion) make.
  std::string_view prompt_of(std::span<const std::string_view> values);
  /// Of messages those from `first_learned` on may be answers. Throws BrokenRecord for what the format refuses.
  void from_messages(std::span<const Message> messages, std::size_t first_learned, Record& record);
  void from_messages(const RichChat& chat, std::size_t first_learned, Record& record);

 private:
  void take_pair();
  void take_template(const std::string& pattern);
  void put_template(std::span<const std::string_view> values);
  void finish(Record& record) const;

  ReadOptions options_;
  Shape shape_ = Shape::text;
  ChatText text_;
  std::string prompt_;
  std::vector<std::string> fields_;
  std::vector<std::string> keys_;  // of the settings, by field
  std::vector<bool> optional_;
  std::optional<TextTemplate> template_;
  std::optional<TextTemplate> without_input_;  // Alpaca's, for records whose input is empty
  std::shared_ptr<const ChatFormat> format_;
};

}  // namespace kf
