#pragma once
// A tokenizer whose ids reach over characters and words, as real ones do: for what crosses the borders of tokens.

#include <stdexcept>
#include <string>
#include <vector>

#include "data/tokenizer/tokenizer.h"

namespace kf::test {

/// The longest piece that fits, from left to right. As SentencePiece does, the space of a text's first word is dropped on decoding.
class PieceTokenizer final : public Tokenizer {
 public:
  /// Id i stands for pieces[i]; one that is "" is special and ends a document.
  PieceTokenizer(std::vector<std::string> pieces, bool drops_space) : pieces_(std::move(pieces)), drops_space_(drops_space) {}

  std::vector<std::int64_t> encode(std::string_view text) const override {
    std::vector<std::int64_t> ids;
    while (!text.empty()) {
      std::size_t best = pieces_.size();
      for (std::size_t i = 0; i < pieces_.size(); ++i) {
        if (!pieces_[i].empty() && text.starts_with(pieces_[i]) && (best == pieces_.size() || pieces_[i].size() > pieces_[best].size())) {
          best = i;
        }
      }
      if (best == pieces_.size()) {
        throw std::runtime_error("no piece for " + std::string(text));
      }
      ids.push_back(static_cast<std::int64_t>(best));
      text.remove_prefix(pieces_[best].size());
    }
    return ids;
  }
  std::string decode(std::span<const std::int64_t> ids) const override {
    std::string text;
    for (const std::int64_t id : ids) {
      text += pieces_.at(static_cast<std::size_t>(id));
    }
    return drops_space_ && text.starts_with(' ') ? text.substr(1) : text;
  }
  std::int64_t vocab_size() const override { return static_cast<std::int64_t>(pieces_.size()); }
  std::optional<std::int64_t> eos_id() const override {
    for (std::size_t i = 0; i < pieces_.size(); ++i) {
      if (pieces_[i].empty()) {
        return static_cast<std::int64_t>(i);
      }
    }
    return std::nullopt;
  }

 private:
  std::vector<std::string> pieces_;
  bool drops_space_;
};

}  // namespace kf::test
