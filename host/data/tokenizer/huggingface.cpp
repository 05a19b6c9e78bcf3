// tokenizer.json of Hugging Face's tokenizers, and vocab.json with merges.txt, which is read as the tokenizer.json that GPT-2's would be.

#include <algorithm>
#include <map>
#include <set>

#include "core/error.h"
#include "core/input_file.h"
#include "core/log.h"
#include "data/tokenizer/added_tokens.h"
#include "data/tokenizer/byte_bpe.h"
#include "data/tokenizer/byte_letters.h"
#include "data/tokenizer/decoders.h"
#include "data/tokenizer/file_tokenizer.h"
#include "data/tokenizer/models.h"
#include "data/tokenizer/normalizers.h"
#include "data/tokenizer/post_processor.h"
#include "data/tokenizer/pre_tokenizers.h"
#include "data/tokenizer/scratch.h"
#include "data/tokenizer/unicode.h"

namespace kf {
namespace {

struct HfScratch {
  std::unique_ptr<ByteBpe::Scratch> bytes;  // made when the model takes bytes
  TextModel::Scratch text;
  TextPieces pieces;
  std::vector<TextStretch> stretches;
  std::vector<TextStretch> normalized_stretches;
  std::string valid;
};

class HuggingFace final : public FileTokenizer {
 public:
  HuggingFace(const json::Place& root, std::string_view content, const fs::path& folder) {
    read_vocabulary(root.at("model"));
    read_pipeline(root);
    read_model(root);
    read_added(root);
    if (root.has("post_processor")) {
      post_ = read_post_processor(root.at("post_processor"));
    }
    if (root.has("decoder")) {
      decoder_ = make_decoder(root.at("decoder"));
    }
    for (const char* key : {"truncation", "padding"}) {
      if (root.has(key)) {
        log::warn("{} is not applied: texts keep their length", root.path(key));
      }
    }
    const FindToken find = [this](std::string_view name) { return token_id(name); };
    const SpecialIds ids = special_ids(folder, find);
    if (root.has("merges_txt")) {  // no tokenizer.json, which would say it itself
      post_ = surrounding(folder, ids, {});
    } else {
      warn_of_other_surrounding(folder, ids, post_);
    }
    identify("huggingface", content, ids);
    mark_special();
    spell_bytes();
  }

  std::size_t append(std::string_view text, std::vector<std::uint32_t>& out, const EncodeOptions& options) const override {
    const auto scratch = scratch_.take();
    if (bytes_ && !scratch->bytes) {
      scratch->bytes = std::make_unique<ByteBpe::Scratch>();
    }
    if (!keeps_bytes_) {
      text = unicode::valid(text, scratch->valid);
    }
    if (options.surround != Surround::nothing) {
      out.insert(out.end(), post_.before.begin(), post_.before.end());
    }
    scratch->stretches.clear();
    const bool plain = options.written.empty();
    std::size_t count = (plain ? added_ : added_in_formats_).find(text, options.special, scratch->stretches, options.written);
    for (const TextStretch& stretch : scratch->stretches) {
      if (stretch.token != nullptr) {
        out.push_back(stretch.token->id);
      } else {
        count += encode_stretch(text.substr(stretch.begin, stretch.end - stretch.begin), stretch.begin == 0,
                                plain ? options.special : SpecialText::text, out, *scratch);
      }
    }
    if (options.surround == Surround::text) {
      out.insert(out.end(), post_.after.begin(), post_.after.end());
    }
    return count;
  }

  std::int64_t vocab_size() const override { return size_; }
  std::optional<std::string> token(std::int64_t id) const override {
    if (id < 0 || id >= size_) {
      return std::nullopt;
    }
    if (const auto added = added_by_id_.find(static_cast<std::uint32_t>(id)); added != added_by_id_.end()) {
      return added->second.content;
    }
    const auto found = vocabulary_.token(static_cast<std::uint32_t>(id));
    return found ? std::optional(std::string(*found)) : std::nullopt;
  }
  std::optional<std::int64_t> token_id(std::string_view token) const override {
    for (const auto& [id, added] : added_by_id_) {
      if (added.content == token) {
        return id;
      }
    }
    const auto found = vocabulary_.find(token);
    return found ? std::optional<std::int64_t>(*found) : std::nullopt;
  }
  std::string summary() const override { return format("{}, {} ids", kind_, grouped(size_)); }

 protected:
  std::string text_of(const std::vector<std::uint32_t>& ids, bool with_special) const override {
    if (!byte_texts_.empty()) {
      std::string out;
      for (const std::uint32_t id : ids) {
        out += with_special || !is_special(id) ? byte_texts_[id] : std::string();
      }
      return out;
    }
    std::vector<std::string> tokens;
    for (const std::uint32_t id : ids) {
      std::optional<std::string> spelled = spelling(id);
      if (spelled && (with_special || !is_special(id))) {
        tokens.push_back(std::move(*spelled));
      }
    }
    if (decoder_ == nullptr) {
      return join(tokens, " ");
    }
    decoder_->apply(tokens);
    return join(tokens, "");
  }

 private:
  /// By the text that decoding sees, as the original decides: a vocabulary may hold a special token twice, and a special token that is
  /// normalized to another text is an ordinary one there.
  bool is_special(std::uint32_t id) const { return special_[id]; }

  void read_vocabulary(const json::Place& model) {
    const json::Place vocab = model.at("vocab");
    if (vocab->type == json::Value::Type::array) {  // Unigram: [token, score], ids by place
      for (std::size_t i = 0; i < vocab.size(); ++i) {
        vocabulary_.add(vocab.at(i).at(0).as_string(), static_cast<std::uint32_t>(i));
      }
      return;
    }
    for (const json::Value::Member& member : vocab.as_object()) {
      const json::Place id(member.second, vocab.path() + "[" + kf::quoted(member.first) + "]");
      vocabulary_.add(member.first, static_cast<std::uint32_t>(id.as_integer(0, (1 << 26) - 1)));
    }
  }

  static std::string model_type(const json::Place& model) {
    if (model.has("type")) {
      return model.at("type").as_string();
    }
    return model.has("merges") ? "BPE" : model.at("vocab")->type == json::Value::Type::array ? "Unigram" : model.at("type").as_string();
  }

  void read_pipeline(const json::Place& root) {
    if (root.has("normalizer")) {
      normalizer_ = make_normalizer(root.at("normalizer"));
    }
    const bool bpe = model_type(root.at("model")) == "BPE";
    if (root.has("pre_tokenizer")) {
      pre_ = make_pre_tokenizers(root.at("pre_tokenizer"), bpe && bytes_suffice(root.at("model")));
    }
  }

  /// Whether every byte's letter is a token and nothing else changes what the model sees, so that it can work on bytes.
  bool bytes_suffice(const json::Place& model) const {
    bool all = model.string_or("continuing_subword_prefix", "").empty() && model.string_or("end_of_word_suffix", "").empty();
    bool any_missing = false;
    for (int byte = 0; byte < 256; ++byte) {
      const char c = static_cast<char>(byte);
      any_missing = any_missing || !vocabulary_.find(byte_letters::spell({&c, 1}));
    }
    // Without one of the letters what counts is the unknown token; without that, such bytes are left out.
    return all && (!any_missing || (!model.has("unk_token") && !model.bool_or("byte_fallback", false)));
  }

  void read_model(const json::Place& root) {
    const json::Place model = root.at("model");
    const std::string type = model_type(model);
    kind_ = type;
    if (type == "BPE") {
      const BpeSpec spec = read_bpe(model);
      if (pre_.spells_bytes && bytes_suffice(model)) {
        kind_ = "byte-level BPE";
        make_byte_model(spec, model.path());
      } else {
        model_ = make_bpe(spec, vocabulary_, model.path());
      }
    } else if (type == "Unigram") {
      model_ = make_unigram(model, vocabulary_);
    } else if (type == "WordPiece") {
      model_ = make_wordpiece(model, vocabulary_);
    } else if (type == "WordLevel") {
      model_ = make_wordlevel(model, vocabulary_);
    } else {
      fail(Code::data, "{} = {} is not supported; there are BPE, Unigram, WordPiece, WordLevel", model.path("type"), kf::quoted(type));
    }
    keeps_bytes_ = bytes_ != nullptr && normalizer_ == nullptr;
  }

  void make_byte_model(const BpeSpec& spec, const std::string& where) {
    Vocabulary bytes;
    for (std::uint32_t id = 0; id < vocabulary_.end(); ++id) {
      const auto token = vocabulary_.token(id);
      if (const auto read = token ? byte_letters::read(*token) : std::nullopt) {
        bytes.add(*read, id);
      }
    }
    std::array<std::uint32_t, 256> byte_ids{};
    for (std::size_t byte = 0; byte < 256; ++byte) {
      const char c = static_cast<char>(byte);
      byte_ids[byte] = vocabulary_.find(byte_letters::spell({&c, 1})).value_or(ByteBpe::kNoId);
    }
    bytes_ = std::make_unique<ByteBpe>(std::move(bytes), make_merges(spec, vocabulary_, where), byte_ids, spec.ignore_merges);
  }

  void read_added(const json::Place& root) {
    size_ = vocabulary_.end();
    if (!root.has("added_tokens")) {
      return;
    }
    const json::Place list = root.at("added_tokens");
    std::vector<AddedToken> all;
    for (std::size_t i = 0; i < list.size(); ++i) {
      all.push_back(read_added_token(list.at(i)));
    }
    // Special ones first: where two look alike, the first is found.
    std::stable_partition(all.begin(), all.end(), [](const AddedToken& token) { return token.special; });
    for (const AddedToken& token : all) {
      added_by_id_[token.id] = token;
      size_ = std::max<std::int64_t>(size_, std::int64_t{token.id} + 1);
      const bool normalize = token.normalized && normalizer_ != nullptr;
      (token.normalized ? added_normalized_ : added_).add(token, normalize ? normalizer_->apply(token.content) : token.content);
      if (token.special || !token.normalized) {
        added_in_formats_.add(token, token.content);
      }
    }
  }

  AddedToken read_added_token(const json::Place& spec) const {
    spec.warn_unknown({"id", "content", "single_word", "lstrip", "rstrip", "normalized", "special"});
    AddedToken out;
    out.content = spec.at("content").as_string();
    out.id = static_cast<std::uint32_t>(spec.at("id").as_integer(0, (1 << 26) - 1));
    out.single_word = spec.bool_or("single_word", false);
    out.lstrip = spec.bool_or("lstrip", false);
    out.rstrip = spec.bool_or("rstrip", false);
    out.special = spec.bool_or("special", false);
    out.normalized = spec.bool_or("normalized", !out.special);
    if (const auto in_model = vocabulary_.find(out.content); in_model && *in_model != out.id) {
      fail(Code::data, "{} is {}, but the model's vocabulary has {} under {}", spec.path("id"), out.id, kf::quoted(out.content), *in_model);
    }
    return out;
  }

  /// As decoding sees it: added tokens that are looked for in normalized text are normalized, too.
  std::optional<std::string> spelling(std::uint32_t id) const {
    const auto added = added_by_id_.find(id);
    const bool normalize = added != added_by_id_.end() && added->second.normalized && normalizer_ != nullptr;
    return normalize ? normalizer_->apply(added->second.content) : token(id);
  }

  void mark_special() {
    std::set<std::string> names;
    for (const auto& [id, token] : added_by_id_) {
      if (token.special) {
        names.insert(token.content);
      }
    }
    for (std::int64_t id = 0; id < size_; ++id) {
      special_.push_back(names.count(spelling(static_cast<std::uint32_t>(id)).value_or("")) > 0);
    }
  }

  void spell_bytes() {
    if (decoder_ == nullptr || !decoder_->is_byte_level()) {
      return;
    }
    for (std::int64_t id = 0; id < size_; ++id) {
      byte_texts_.push_back(byte_level_bytes(spelling(static_cast<std::uint32_t>(id)).value_or("")));
    }
  }

  std::size_t encode_stretch(std::string_view text, bool at_start, SpecialText special, std::vector<std::uint32_t>& out,
                             HfScratch& scratch) const {
    std::string changed;
    if (normalizer_ != nullptr && !(normalizer_->keeps_ascii() && unicode::is_ascii(text))) {
      changed = normalizer_->apply(text);
      text = changed;
    }
    if (added_normalized_.empty()) {
      encode_words(text, at_start, out, scratch);
      return 0;
    }
    std::vector<TextStretch>& stretches = scratch.normalized_stretches;
    stretches.clear();
    const std::size_t count = added_normalized_.find(text, special, stretches);
    for (const TextStretch& stretch : stretches) {
      if (stretch.token != nullptr) {
        out.push_back(stretch.token->id);
      } else {
        encode_words(text.substr(stretch.begin, stretch.end - stretch.begin), at_start && stretch.begin == 0, out, scratch);
      }
    }
    return count;
  }

  void encode_words(std::string_view text, bool at_start, std::vector<std::uint32_t>& out, HfScratch& scratch) const {
    if (bytes_ && pre_.only_pattern) {
      bytes_->encode_all(text, *pre_.only_pattern, out, *scratch.bytes);
      return;
    }
    if (text.empty()) {
      return;
    }
    scratch.pieces.clear();
    scratch.pieces.list.push_back({text, at_start});
    for (const auto& part : pre_.parts) {
      part->split(scratch.pieces);
    }
    for (const TextPiece& piece : scratch.pieces.list) {
      if (piece.text.empty()) {
        continue;
      }
      if (bytes_) {
        bytes_->encode(piece.text, out, *scratch.bytes);
      } else {
        model_->encode(piece.text, out, scratch.text);
      }
    }
  }

  Vocabulary vocabulary_;
  std::unique_ptr<Normalizer> normalizer_;
  PreTokenizing pre_;
  std::unique_ptr<ByteBpe> bytes_;  // one of these two
  std::unique_ptr<TextModel> model_;
  bool keeps_bytes_ = false;
  AddedTokens added_;
  AddedTokens added_normalized_;
  AddedTokens added_in_formats_;  // those of `added_`, and special ones that are normalized as they are written: a format writes them so
  std::map<std::uint32_t, AddedToken> added_by_id_;
  std::vector<bool> special_;  // by id
  PostProcessor post_;
  std::unique_ptr<Decoder> decoder_;
  std::vector<std::string> byte_texts_;  // by id; empty where decoding is not token by token
  std::int64_t size_ = 0;
  std::string kind_;
  mutable ScratchPool<HfScratch> scratch_;
};

json::Value text_value(std::string text) {
  json::Value out;
  out.type = json::Value::Type::string;
  out.text = std::move(text);
  return out;
}

/// merges.txt: a "#version" line, then two tokens a line.
json::Value read_merges_txt(const fs::path& file) {
  json::Value out;
  out.type = json::Value::Type::array;
  std::int64_t number = 0;
  for (std::string& line : split(read_input(file, Code::data), '\n')) {
    ++number;
    if (line.ends_with('\r')) {
      line.pop_back();
    }
    if (line.empty() || line.starts_with("#version")) {
      continue;
    }
    KF_CHECK(std::count(line.begin(), line.end(), ' ') == 1, Code::data, "{}, line {}: {} is no merge: two tokens with one blank between",
             file, number, kf::quoted(line));
    out.items.push_back(text_value(std::move(line)));
  }
  return out;
}

/// Names of special tokens: the values of special_tokens_map.json, else GPT-2's.
std::vector<std::string> special_names(const fs::path& folder) {
  std::error_code ignored;
  const fs::path file = folder / "special_tokens_map.json";
  if (!fs::exists(file, ignored)) {
    return {"<|endoftext|>"};
  }
  std::vector<std::string> out;
  const json::Value root = json::parse(read_input(file, Code::data), file.string());
  for (const json::Value::Member& member : json::Place(root, file.string() + ": ").as_object()) {
    const json::Value* content = member.second.find("content");
    if (content != nullptr || member.second.type == json::Value::Type::string) {
      out.push_back(content != nullptr ? content->text : member.second.text);
    }
  }
  return out;
}

}  // namespace

std::unique_ptr<FileTokenizer> open_huggingface(const json::Value& root, std::string_view content, const fs::path& file) {
  return std::make_unique<HuggingFace>(json::Place(root, file.string() + ": "), content, file.parent_path());
}

std::unique_ptr<FileTokenizer> open_vocab_and_merges(const fs::path& vocab, const fs::path& merges) {
  const std::string vocab_text = read_input(vocab, Code::data);
  json::Value root = json::parse(R"({"added_tokens": [], "model": {"type": "BPE"}, "merges_txt": true,
    "pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": false}, "decoder": {"type": "ByteLevel"}})",
                                 "vocab.json");
  json::Value words = json::parse(vocab_text, vocab.string());
  for (const std::string& name : special_names(vocab.parent_path())) {
    if (const json::Value* id = words.find(name)) {
      json::Value token = json::parse(R"({"special": true, "normalized": false})", "special");
      token.members.push_back({"content", text_value(name)});
      token.members.push_back({"id", *id});
      const_cast<json::Value*>(root.find("added_tokens"))->items.push_back(std::move(token));
    }
  }
  auto* model = const_cast<json::Value*>(root.find("model"));
  model->members.push_back({"vocab", std::move(words)});
  model->members.push_back({"merges", read_merges_txt(merges)});
  return std::make_unique<HuggingFace>(json::Place(root, vocab.string() + " and " + merges.filename().string() + ": "),
                                       vocab_text + read_input(merges, Code::data), vocab.parent_path());
}

}  // namespace kf
