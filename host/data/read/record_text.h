#pragma once
// From the fields of a record to its text: one field, a template of several, or the messages of a chat.

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/error.h"
#include "data/read/reader.h"

namespace kf {

/// A record that cannot be read, while those behind it can: what data.on_error = "skip" leaves out.
class BrokenRecord : public Error {
 public:
  explicit BrokenRecord(std::string message) : Error(Code::data, std::move(message)) {}
};

/// "{title}\n\n{body}" taken apart. `{{` and `}}` stand for braces.
class TextTemplate {
 public:
  /// `key` (data.text_template) is for messages. Throws Code::config when a brace is left open or a name is empty.
  TextTemplate(std::string_view pattern, const std::string& key);

  struct Piece {
    std::string text;         // as it is; or
    std::size_t field = kNo;  // the place of a field in `fields`
  };
  static constexpr std::size_t kNo = static_cast<std::size_t>(-1);
  const std::vector<Piece>& pieces() const { return pieces_; }
  const std::vector<std::string>& fields() const { return fields_; }

 private:
  std::vector<Piece> pieces_;
  std::vector<std::string> fields_;
};

struct Message {
  std::string_view role;
  std::string_view content;
};

/// Builds records. One a reader: it holds the text of the last record.
class RecordText {
 public:
  /// Throws Code::config for templates and formats that make no sense.
  explicit RecordText(const ReadOptions& options);

  bool chat() const { return chat_; }
  /// The fields that a record must have, in the order in which `from_fields` takes them; of a chat: the one with its messages.
  const std::vector<std::string>& fields() const { return fields_; }
  /// Whether fields must be strings; in a template numbers and booleans are printed as well.
  bool strings_only() const { return !template_; }
  /// "the text field "text" (data.hf_dataset_text_field)", for messages.
  std::string describe(std::size_t field) const;

  /// The values stay the caller's until the record is used up. All are valid UTF-8.
  void from_fields(std::span<const std::string_view> values, Record& record);
  void from_messages(std::span<const Message> messages, Record& record);

 private:
  std::string key_;
  std::string text_;
  std::vector<std::string> fields_;
  std::optional<TextTemplate> template_;
  std::optional<TextTemplate> message_;
  bool chat_ = false;
  bool answers_only_ = false;
};

}  // namespace kf
