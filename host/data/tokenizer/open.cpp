#include <algorithm>

#include "core/error.h"
#include "core/fs.h"
#include "core/input_file.h"
#include "core/text.h"
#include "data/tokenizer/file_tokenizer.h"
#include "data/tokenizer/json.h"

namespace kf {
namespace {

bool is_there(const fs::path& path) {
  std::error_code ignored;
  return fs::exists(path, ignored);
}

/// Whether the first line is base64, a blank, and a number.
bool looks_like_ranks(std::string_view content) {
  const std::string_view line = trim(content.substr(0, std::min<std::size_t>(content.find('\n'), 4096)));
  const std::size_t blank = line.find(' ');
  return blank != std::string_view::npos && blank > 0 && blank + 1 < line.size() &&
         line.find_first_not_of("0123456789", blank + 1) == std::string_view::npos &&
         line.substr(0, blank).find_first_not_of("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/=") ==
             std::string_view::npos;
}

std::unique_ptr<FileTokenizer> open_json(const std::string& content, const fs::path& file) {
  const json::Value root = json::parse(content, file.string());
  if (root.find("model") != nullptr) {
    return open_huggingface(root, content, file);
  }
  if (root.find("config") != nullptr && root.find("vocab") != nullptr) {
    return open_tekken(root, content, file);
  }
  const bool words = root.type == json::Value::Type::object && !root.members.empty() &&
                     std::all_of(root.members.begin(), root.members.end(),
                                 [](const json::Value::Member& member) { return member.second.type == json::Value::Type::number; });
  const fs::path merges = file.parent_path() / "merges.txt";
  KF_CHECK(
      words, Code::data,
      "{}: a tokenizer has \"model\" (tokenizer.json), \"config\" and \"vocab\" (tekken.json) or only tokens with their ids (vocab.json)",
      file);
  KF_CHECK(is_there(merges), Code::data, "{} holds tokens and their ids, and {} with their merges is missing", file, merges);
  return open_vocab_and_merges(file, merges);
}

std::unique_ptr<FileTokenizer> open_file(const fs::path& file) {
  if (file.filename() == "merges.txt") {
    return open_file(file.parent_path() / "vocab.json");
  }
  const std::string content = read_input(file, Code::data);
  KF_CHECK(!content.empty(), Code::data, "{} is empty", file);
  const std::string_view start = trim(std::string_view(content).substr(0, 4096));
  if (start.starts_with('{') || start.starts_with("\xef\xbb\xbf{")) {
    return open_json(content, file);
  }
  if (looks_like_ranks(content)) {
    return open_tiktoken(content, file);
  }
  return open_sentencepiece(content, file);
}

fs::path file_in(const fs::path& folder) {
  for (const char* name : {"tokenizer.json", "tekken.json", "tokenizer.model", "vocab.json"}) {
    if (is_there(folder / name)) {
      return folder / name;
    }
  }
  const std::vector<fs::path> ranks = glob(folder, "*.tiktoken");
  KF_CHECK(!ranks.empty(), Code::data,
           "{} holds no tokenizer: tokenizer.json, tekken.json, tokenizer.model, vocab.json with merges.txt or *.tiktoken", folder);
  KF_CHECK(ranks.size() == 1, Code::data, "{} holds several tokenizers: {}, {}; name one", folder, ranks[0].filename(),
           ranks[1].filename());
  return ranks[0];
}

}  // namespace

std::unique_ptr<Tokenizer> open_tokenizer(const std::string& path, std::int64_t model_vocab) {
  const fs::path file(path);
  KF_CHECK(is_there(file), Code::data, "{}: no such file or folder", path);
  std::unique_ptr<FileTokenizer> out = open_file(fs::is_directory(file) ? file_in(file) : file);
  out->allow_ids_below(model_vocab);
  return out;
}

}  // namespace kf
