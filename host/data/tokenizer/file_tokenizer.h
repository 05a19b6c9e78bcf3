#pragma once
// What tokenizers from files share.

#include <functional>
#include <optional>
#include <string>

#include "core/fs.h"
#include "data/tokenizer/json.h"
#include "data/tokenizer/post_processor.h"
#include "data/tokenizer/tokenizer.h"

namespace kf {

/// Ids that begin and end documents and fill up rows.
struct SpecialIds {
  std::optional<std::int64_t> bos;
  std::optional<std::int64_t> eos;
  std::optional<std::int64_t> pad;
};

using FindToken = std::function<std::optional<std::int64_t>(std::string_view)>;

/// By tokenizer_config.json and special_tokens_map.json in `folder`; where neither names a token, by the names that are in use everywhere
/// ("<|endoftext|>", "</s>", ...), if `find` knows one as special.
SpecialIds special_ids(const fs::path& folder, const FindToken& find);

/// What a library puts around a text where the tokenizer's file does not say it (SentencePiece, vocab.json, ranks): BOS and EOS by
/// `usual`, unless add_bos_token and add_eos_token of tokenizer_config.json in `folder` say something else. Tokenizers of T5's kind
/// (by tokenizer_class) have EOS alone. Throws Code::data where the file asks for a token that there is none of.
struct Surroundings {
  bool bos = false;
  bool eos = false;
};
PostProcessor surrounding(const fs::path& folder, const SpecialIds& ids, Surroundings usual);

/// tokenizer.json decides, as in transformers 5; a tokenizer_config.json beside it that says something else is worth a word.
void warn_of_other_surrounding(const fs::path& folder, const SpecialIds& ids, const PostProcessor& post);

class FileTokenizer : public Tokenizer {
 public:
  bool reads_special() const override { return true; }
  std::vector<std::int64_t> encode(std::string_view text) const final;
  std::string decode(std::span<const std::int64_t> ids) const final { return text_of(checked(ids), false); }
  std::string decode_with_special(std::span<const std::int64_t> ids) const final { return text_of(checked(ids), true); }
  std::optional<std::int64_t> eos_id() const final { return special_.eos; }
  std::optional<std::int64_t> bos_id() const final { return special_.bos; }
  std::optional<std::int64_t> pad_id() const final { return special_.pad; }
  std::string content_hash() const final { return hash_; }
  bool concurrent() const final { return true; }

  /// Ids from vocab_size() up to `end` decode to "": a model may have more rows than the tokenizer has ids, and samples them until it is
  /// trained.
  void allow_ids_below(std::int64_t end) { end_ = end; }

 protected:
  /// Ids below vocab_size().
  virtual std::string text_of(const std::vector<std::uint32_t>& ids, bool with_special) const = 0;
  /// `content`: of all files that decide the ids.
  void identify(std::string_view kind, std::string_view content, const SpecialIds& special);

 private:
  std::vector<std::uint32_t> checked(std::span<const std::int64_t> ids) const;

  SpecialIds special_;
  std::string hash_;
  std::int64_t end_ = 0;
};

// `root` is `content` parsed.
std::unique_ptr<FileTokenizer> open_huggingface(const json::Value& root, std::string_view content, const fs::path& file);
std::unique_ptr<FileTokenizer> open_vocab_and_merges(const fs::path& vocab, const fs::path& merges);
std::unique_ptr<FileTokenizer> open_tiktoken(const std::string& content, const fs::path& file);
std::unique_ptr<FileTokenizer> open_tekken(const json::Value& root, std::string_view content, const fs::path& file);
std::unique_ptr<FileTokenizer> open_sentencepiece(const std::string& content, const fs::path& file);

}  // namespace kf
