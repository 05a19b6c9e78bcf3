#include "checkpoint/gguf/vocabulary.h"

#include <string_view>
#include <utility>

#include "checkpoint/gguf/file.h"
#include "core/error.h"
#include "core/log.h"
#include "core/plain_file.h"
#include "data/tokenizer/byte_letters.h"
#include "data/tokenizer/json.h"

namespace kf::gguf {
namespace {

constexpr std::uint64_t kMostBytes = std::uint64_t{1} << 30;
constexpr std::int64_t kMostIds = 1 << 26;
constexpr float kLowest = -1e4F;  // of ids that nothing is merged into

/// How llama.cpp calls what cuts texts: by the pattern, and whether words that are tokens are taken without merging.
struct Cutting {
  std::string_view pattern;
  bool ignore_merges;
  const char* name;
};
#define KF_LETTERS "(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|"
#define KF_REST "| ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+"
constexpr Cutting kCuttings[] = {{KF_LETTERS "\\p{N}{1,3}" KF_REST, true, "llama-bpe"},
                                 {KF_LETTERS "\\p{N}{1,3}" KF_REST, false, "dbrx"},
                                 {KF_LETTERS "\\p{N}" KF_REST, false, "qwen2"}};
#undef KF_LETTERS
#undef KF_REST

void put(Vocabulary& out, std::int64_t id, const std::string& token, TokenType type) {
  const auto index = static_cast<std::size_t>(id);
  if (out.tokens.size() <= index) {
    out.tokens.resize(index + 1);
    out.types.resize(index + 1, TokenType::unused);
  }
  out.tokens[index] = token;
  out.types[index] = type;
}

/// Tokens that stand beside the model of a tokenizer.json.
void add_added(const json::Place& root, Vocabulary& out) {
  if (!root.has("added_tokens")) {
    return;
  }
  const json::Place added = root.at("added_tokens");
  for (std::size_t i = 0; i < added.size(); ++i) {
    put(out, added.at(i).at("id").as_integer(0, kMostIds), added.at(i).at("content").as_string(),
        added.at(i).bool_or("special", false) ? TokenType::control : TokenType::user_defined);
  }
}

bool falls_back_to_bytes(const json::Value& root) {
  const json::Value* const model = root.find("model");
  const json::Value* const bytes = model != nullptr ? model->find("byte_fallback") : nullptr;
  return bytes != nullptr && bytes->boolean;
}

Vocabulary with_added(Vocabulary pieces, const fs::path& file, const json::Value& root) {
  const std::vector<TokenType> own = pieces.types;
  add_added(json::Place(root, file.string()), pieces);
  std::copy(own.begin(), own.end(), pieces.types.begin());  // <unk> is special there, and more than that here
  return pieces;
}

class Reader {
 public:
  Reader(const fs::path& file, const json::Value& root) : file_(file), root_(root, file.string()) {}

  Vocabulary read() const {
    const json::Place model = root_.at("model");
    check(model.string_or("type", "") == "BPE" && !model.bool_or("byte_fallback", false),
          "it is no byte-level BPE; of the other kinds, BPE of a tokenizer.model is written into GGUF files");
    check(!root_.has("normalizer") || root_.at("normalizer").string_or("type", "") == "NFC", "it has a normalizer, which llama.cpp lacks");
    Vocabulary out;
    out.model = "gpt2";
    out.split = cutting(model.bool_or("ignore_merges", false));
    for (const auto& [token, id] : model.at("vocab").as_object()) {
      put(out, json::Place(id, file_.string()).as_integer(0, kMostIds), token, TokenType::normal);
    }
    const json::Place merges = model.at("merges");
    for (std::size_t i = 0; i < merges.size(); ++i) {
      const json::Place merge = merges.at(i);
      out.merges.push_back(merge->type == json::Value::Type::string ? merge.as_string()
                                                                    : merge.at(std::size_t{0}).as_string() + " " + merge.at(1).as_string());
    }
    add_added(root_, out);
    return out;
  }

 private:
  void check(bool holds, std::string_view what) const {
    KF_CHECK(holds, Code::data, "{}: {}; without a tokenizer in it, no GGUF file is of use", file_, what);
  }

  std::string cutting(bool ignore_merges) const {
    check(root_.has("pre_tokenizer"), "it does not cut texts");
    const json::Place cutter = root_.at("pre_tokenizer");
    if (cutter.string_or("type", "") == "ByteLevel" && cutter.bool_or("use_regex", true)) {
      check(!cutter.bool_or("add_prefix_space", true) && !ignore_merges, "it puts a blank in front of texts, which llama.cpp does not");
      return "gpt-2";
    }
    check(cutter.string_or("type", "") == "Sequence" && cutter.at("pretokenizers").size() == 2,
          "the way in which it cuts texts is none that llama.cpp is known to have");
    const json::Place split = cutter.at("pretokenizers").at(std::size_t{0});
    const std::string pattern = split.has("pattern") ? split.at("pattern").string_or("Regex", "") : "";
    for (const Cutting& known : kCuttings) {
      if (known.pattern == pattern && known.ignore_merges == ignore_merges) {
        return known.name;
      }
    }
    check(false, "the pattern by which it cuts texts is none that llama.cpp is known to have (those of GPT-2, Llama 3 and Qwen 2)");
    return {};
  }

  const fs::path& file_;
  json::Place root_;
};

/// The 256 bytes and the id that ends a document.
Vocabulary of_bytes() {
  Vocabulary out;
  out.model = "gpt2";
  out.split = "gpt-2";
  for (int byte = 0; byte < 256; ++byte) {
    out.tokens.push_back(byte_letters::spell(std::string(1, static_cast<char>(byte))));
    out.types.push_back(TokenType::normal);
  }
  out.tokens.emplace_back("<|endoftext|>");
  out.types.push_back(TokenType::control);
  return out;
}

std::string chat_template_in(const fs::path& folder) {
  if (path_exists(folder / "chat_template.jinja")) {
    return read_regular_file(folder / "chat_template.jinja", kMostBytes);
  }
  const fs::path file = folder / "tokenizer_config.json";
  if (!path_exists(file)) {
    return {};
  }
  const json::Value root = json::parse(read_regular_file(file, kMostBytes), file.string());
  const json::Value* const text = root.find("chat_template");
  return text != nullptr && text->type == json::Value::Type::string ? text->text : "";
}

}  // namespace

Vocabulary read_vocabulary(const fs::path& path, const Tokenizer& tokenizer, std::int64_t rows) {
  Vocabulary out;
  if (path.empty()) {
    out = of_bytes();
  } else {
    const fs::path folder = fs::is_directory(path) ? path : path.parent_path();
    const fs::path json = path == folder ? folder / "tokenizer.json" : path, model = path == folder ? folder / "tokenizer.model" : path;
    if (path_exists(json) && json.extension() == ".json") {
      const json::Value root = json::parse(read_regular_file(json, kMostBytes), json.string());
      // BPE over characters has ranks there and scores in the model beside it, which llama.cpp merges by.
      const bool of_pieces = falls_back_to_bytes(root) && path_exists(folder / "tokenizer.model");
      out = of_pieces ? with_added(read_sentencepiece(folder / "tokenizer.model"), json, root) : Reader(json, root).read();
    } else {
      KF_CHECK(path_exists(model) && model.extension() == ".model", Code::data,
               "{}: only tokenizers in a tokenizer.json or a tokenizer.model are written into GGUF files; transformers' "
               "tokenizer.save_pretrained(DIR) writes them",
               path);
      out = read_sentencepiece(model);
    }
    out.chat_template = chat_template_in(folder);
  }
  KF_CHECK(static_cast<std::int64_t>(out.tokens.size()) <= rows, Code::data, "{}: has {} tokens, and the model {} ids", path,
           out.tokens.size(), rows);
  out.types.resize(static_cast<std::size_t>(rows), TokenType::unused);
  out.tokens.resize(static_cast<std::size_t>(rows));
  out.scores.resize(out.model == "llama" ? out.tokens.size() : 0, kLowest);
  for (std::size_t id = 0; id < out.tokens.size(); ++id) {
    if (out.types[id] == TokenType::unused) {
      out.tokens[id] = format("[PAD{}]", id);  // ids that no text has
    }
  }
  out.bos = tokenizer.bos_id();
  out.eos = tokenizer.eos_id();
  out.pad = tokenizer.pad_id();
  return out;
}

void write(const Vocabulary& vocabulary, File& out) {
  std::vector<std::int32_t> types;
  for (const TokenType type : vocabulary.types) {
    types.push_back(static_cast<std::int32_t>(type));
  }
  const auto id = [&](const std::string& key, const std::optional<std::int64_t>& value) {
    if (value) {
      out.add("tokenizer.ggml." + key, static_cast<std::uint32_t>(*value));
    }
  };
  out.add("tokenizer.ggml.model", vocabulary.model);
  out.add("tokenizer.ggml.pre", vocabulary.model == "llama" ? "default" : vocabulary.split);
  out.add("tokenizer.ggml.tokens", vocabulary.tokens);
  out.add("tokenizer.ggml.token_type", types);
  if (vocabulary.model == "llama") {
    out.add("tokenizer.ggml.scores", vocabulary.scores);
    out.add("tokenizer.ggml.add_space_prefix", vocabulary.add_space_prefix);
  } else {
    out.add("tokenizer.ggml.merges", vocabulary.merges);
  }
  id("bos_token_id", vocabulary.bos);
  id("eos_token_id", vocabulary.eos);
  id("padding_token_id", vocabulary.pad);
  id("unknown_token_id", vocabulary.unknown);
  out.add("tokenizer.ggml.add_bos_token", vocabulary.begins_with_bos);
  out.add("tokenizer.ggml.add_eos_token", false);
  if (!vocabulary.chat_template.empty()) {
    out.add("tokenizer.chat_template", vocabulary.chat_template);
  }
}

}  // namespace kf::gguf
