// WordPiece and WordLevel.

#include "core/error.h"
#include "data/tokenizer/models.h"
#include "data/tokenizer/unicode.h"

namespace kf {
namespace {

/// The longest token that begins a word, then the longest that continues it, and so on; a word that does not work out is unknown.
class WordPiece final : public TextModel {
 public:
  WordPiece(const json::Place& spec, const Vocabulary& vocabulary)
      : vocabulary_(vocabulary),
        prefix_(spec.string_or("continuing_subword_prefix", "##")),
        longest_word_(spec.has("max_input_chars_per_word")
                          ? static_cast<std::size_t>(spec.at("max_input_chars_per_word").as_integer(0, std::int64_t{1} << 40))
                          : 100),
        unknown_text_(spec.string_or("unk_token", "[UNK]")),
        unknown_(vocabulary.find(unknown_text_)) {}

  void encode(std::string_view piece, std::vector<std::uint32_t>& out, Scratch& /*scratch*/) const override {
    const std::size_t before = out.size();
    if (unicode::count(piece) > longest_word_ || !cut(piece, out)) {
      KF_CHECK(unknown_, Code::data, "a word is not in the vocabulary, which has no token {} (unk_token) for that",
               kf::quoted(unknown_text_));
      out.resize(before);
      out.push_back(*unknown_);
    }
  }

 private:
  bool cut(std::string_view piece, std::vector<std::uint32_t>& out) const {
    std::string spelled;
    for (std::size_t at = 0; at < piece.size();) {
      std::size_t size = std::min(piece.size() - at, vocabulary_.longest());
      std::optional<std::uint32_t> id;
      for (; size > 0; --size) {
        const bool whole = at + size == piece.size() || (static_cast<unsigned char>(piece[at + size]) & 0xc0U) != 0x80U;
        if (!whole) {
          continue;
        }
        std::string_view word = piece.substr(at, size);
        if (at > 0) {
          spelled.assign(prefix_).append(word);
          word = spelled;
        }
        id = vocabulary_.find(word);
        if (id) {
          break;
        }
      }
      if (!id) {
        return false;
      }
      out.push_back(*id);
      at += size;
    }
    return true;
  }

  const Vocabulary& vocabulary_;
  std::string prefix_;
  std::size_t longest_word_;  // in characters
  std::string unknown_text_;
  std::optional<std::uint32_t> unknown_;
};

class WordLevel final : public TextModel {
 public:
  WordLevel(const json::Place& spec, const Vocabulary& vocabulary)
      : vocabulary_(vocabulary), unknown_text_(spec.string_or("unk_token", "<unk>")), unknown_(vocabulary.find(unknown_text_)) {}

  void encode(std::string_view piece, std::vector<std::uint32_t>& out, Scratch& /*scratch*/) const override {
    const auto id = vocabulary_.find(piece);
    KF_CHECK(id || unknown_, Code::data, "the word {} is not in the vocabulary, which has no token {} (unk_token) for that",
             kf::quoted(piece.substr(0, 80)), kf::quoted(unknown_text_));
    out.push_back(id ? *id : *unknown_);
  }

 private:
  const Vocabulary& vocabulary_;
  std::string unknown_text_;
  std::optional<std::uint32_t> unknown_;
};

}  // namespace

std::unique_ptr<TextModel> make_wordpiece(const json::Place& spec, const Vocabulary& vocabulary) {
  spec.warn_unknown({"type", "unk_token", "continuing_subword_prefix", "max_input_chars_per_word", "vocab"});
  return std::make_unique<WordPiece>(spec, vocabulary);
}

std::unique_ptr<TextModel> make_wordlevel(const json::Place& spec, const Vocabulary& vocabulary) {
  spec.warn_unknown({"type", "unk_token", "vocab"});
  return std::make_unique<WordLevel>(spec, vocabulary);
}

}  // namespace kf
