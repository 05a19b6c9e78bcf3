#include "data/tokenizer/tokenizer_files.h"

#include <set>

#include "config/tree/json.h"
#include "core/plain_file.h"
#include "data/tokenizer/byte_letters.h"
#include "data/tokenizer/json.h"
#include "data/tokenizer/json_member.h"
#include "data/tokenizer/tokenizer.h"

namespace kf {
namespace {

using config::Array;
using config::Node;
using config::Table;

constexpr const char* kEnd = "<|endoftext|>";

Node text(const char* words) { return Node(std::string(words)); }

Table end_token() {
  Table out;
  out["id"] = Node(kByteEos);
  out["content"] = text(kEnd);
  for (const char* key : {"single_word", "lstrip", "rstrip", "normalized"}) {
    out[key] = Node(false);
  }
  out["special"] = Node(true);
  return out;
}

/// A part of the kind ByteLevel, which spells bytes as letters and back.
Table byte_level() {
  Table out;
  out["type"] = text("ByteLevel");
  out["add_prefix_space"] = Node(false);
  out["trim_offsets"] = Node(true);
  out["use_regex"] = Node(false);
  return out;
}

/// A vocabulary of letters without merges.
Table letters() {
  Table vocabulary, out;
  for (int byte = 0; byte < 256; ++byte) {
    const char one = static_cast<char>(byte);
    vocabulary[byte_letters::spell({&one, 1})] = Node(std::int64_t{byte});
  }
  out["type"] = text("BPE");
  for (const char* key : {"dropout", "unk_token", "continuing_subword_prefix", "end_of_word_suffix"}) {
    out[key] = Node();
  }
  out["fuse_unk"] = Node(false);
  out["byte_fallback"] = Node(false);
  out["vocab"] = Node(std::move(vocabulary));
  out["merges"] = Node(Array());
  return out;
}

/// What is read in the folder of a tokenizer that is given as one file.
std::vector<std::string> read_beside(const std::string& file) {
  std::vector<std::string> out{"tokenizer_config.json", "special_tokens_map.json", "chat_template.jinja", "chat_template.json"};
  if (file == "vocab.json" || file == "merges.txt") {
    out.emplace_back(file == "vocab.json" ? "merges.txt" : "vocab.json");
  }
  std::erase(out, file);
  return out;
}

}  // namespace

std::vector<fs::path> tokenizer_files(const fs::path& given) {
  static const std::set<std::string> names{"tokenizer.json",
                                           "tokenizer_config.json",
                                           "special_tokens_map.json",
                                           "added_tokens.json",
                                           "vocab.json",
                                           "merges.txt",
                                           "tokenizer.model",
                                           "tekken.json",
                                           "config.json",
                                           "generation_config.json",
                                           "chat_template.jinja",
                                           "chat_template.json",
                                           "vocab.txt"};
  std::vector<fs::path> out;
  std::error_code error;
  if (unlike_a_file(given).empty()) {
    out.push_back(given);
    for (const std::string& name : read_beside(given.filename().string())) {
      if (unlike_a_file(given.parent_path() / name).empty()) {
        out.push_back(given.parent_path() / name);
      }
    }
  }
  for (fs::directory_iterator it(given, error), end; !error && it != end; it.increment(error)) {
    const fs::path& path = it->path();
    const bool one = names.contains(path.filename().string()) || path.extension() == ".tiktoken" || path.extension() == ".jinja";
    if (one && unlike_a_file(path).empty()) {
      out.push_back(path);
    }
  }
  return out;
}

std::map<std::string, std::string> byte_tokenizer_files() {
  Table file, config;
  file["version"] = text("1.0");
  for (const char* key : {"truncation", "padding", "normalizer", "post_processor"}) {
    file[key] = Node();
  }
  file["added_tokens"] = Node(Array{Node(end_token())});
  for (const char* key : {"pre_tokenizer", "decoder"}) {
    file[key] = Node(byte_level());
  }
  file["model"] = Node(letters());
  config["tokenizer_class"] = text("PreTrainedTokenizerFast");
  config["eos_token"] = text(kEnd);
  config["clean_up_tokenization_spaces"] = Node(false);
  return {{"tokenizer.json", config::to_json(Node(std::move(file)), config::JsonStyle::plain, 2) + "\n"},
          {"tokenizer_config.json", config::to_json(Node(std::move(config)), config::JsonStyle::plain, 2) + "\n"}};
}

std::string with_chat_template(const std::string& tokenizer_config, const std::string& chat_template) {
  return json::with_member(tokenizer_config, "chat_template", json::quote(chat_template));
}

}  // namespace kf
