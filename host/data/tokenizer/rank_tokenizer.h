#pragma once
// Byte-level BPE by ranks, as tiktoken and tekken do it: a pattern, tokens as bytes, special tokens beside them.

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "data/tokenizer/added_tokens.h"
#include "data/tokenizer/byte_bpe.h"
#include "data/tokenizer/file_tokenizer.h"
#include "data/tokenizer/regex.h"
#include "data/tokenizer/scratch.h"

namespace kf {

struct RankSpec {
  std::string kind;   // "tiktoken", "tekken"
  std::string where;  // of the pattern, for messages
  std::string pattern;
  Vocabulary tokens;  // bytes to ids
  std::map<std::uint32_t, std::string> special;
  bool special_in_text = true;        // whether special tokens can be written in a text at all
  std::vector<std::uint32_t> before;  // put around a text
  std::vector<std::uint32_t> after;
};

class RankTokenizer final : public FileTokenizer {
 public:
  RankTokenizer(RankSpec spec, std::string_view content, const SpecialIds& ids);

  std::size_t append(std::string_view text, std::vector<std::uint32_t>& out, const EncodeOptions& options) const override;
  bool reads_special() const override { return special_in_text_; }
  std::int64_t vocab_size() const override { return size_; }
  std::optional<std::string> token(std::int64_t id) const override;
  std::optional<std::int64_t> token_id(std::string_view token) const override;
  std::string summary() const override;

 protected:
  std::string text_of(const std::vector<std::uint32_t>& ids, bool with_special) const override;

 private:
  struct Scratch {
    ByteBpe::Scratch bytes;
    std::vector<TextStretch> stretches;
  };
  void encode_stretch(std::string_view text, std::vector<std::uint32_t>& out, Scratch& scratch) const;

  std::string kind_;
  std::map<std::uint32_t, std::string> special_names_;
  bool special_in_text_;
  std::vector<std::uint32_t> before_;
  std::vector<std::uint32_t> after_;
  std::optional<scan::Pattern> pattern_;
  std::optional<Regex> regex_;  // where the pattern is not a known one
  ByteBpe bytes_;
  AddedTokens special_tokens_;
  std::int64_t size_ = 0;
  mutable ScratchPool<Scratch> scratch_;
};

}  // namespace kf
