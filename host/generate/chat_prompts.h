#pragma once
// Chats that ask for an answer, as ids: written by the function that writes what a model learns from.

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "data/chat/chat_format.h"
#include "data/read/reader.h"
#include "data/tokenizer/tokenizer.h"

namespace kf {

/// Whether a model learns from chats, by `data` or a source of its mixture.
bool reads_chats(const config::DataConfig& data);

class ChatPrompts {
 public:
  /// By [data] of the job that a model was trained with. `foreign`: a folder of another program, whose chats its tokenizer's template
  /// writes. Where nothing says how chats are written, a template beside the tokenizer does, else data.message_format.
  ChatPrompts(const config::DataConfig& data, const Tokenizer& tokenizer, bool foreign);

  /// `json`: {"messages": [{"role": ..., "content": ...}, ...]}, in every shape that training reads, with "tools" for templates that take
  /// them. `bos`: whether documents begin with the tokenizer's id for that (data.add_bos); a text that begins with it has it once. Throws
  /// Code::data after `place`.
  std::vector<std::int64_t> ids(const std::string& json, const std::string& place, bool bos) const;
  /// The text of that, for people.
  std::string text(const std::string& json, const std::string& place) const;
  /// A system message (where not empty) and what a user says, as such an object.
  static std::string of_user(const std::string& system, const std::string& said);

  /// The special token that ends an answer, where the format writes one.
  std::vector<std::int64_t> ends() const;
  /// "the template of models/x/chat_template.jinja": for logs.
  const std::string& describe() const { return description_; }

 private:
  struct Written {
    std::string text;
    std::vector<ByteRange> written;
  };
  Written write(const std::string& json, const std::string& place) const;

  const Tokenizer& tokenizer_;
  ReadOptions options_;
  std::string description_;
};

}  // namespace kf
