#include "data/tokenizer/sentencepiece_encoders.h"

#include <algorithm>
#include <cfloat>
#include <map>

#include "data/tokenizer/unicode.h"

namespace kf {
namespace {

using spm::ModelSpec;
using spm::PieceType;

/// Merges neighbours whose text together is a piece, the best score first. Symbols are ids of pieces; single characters that are no pieces
/// of their own, but part of one, have ids behind those; other characters are kOther.
class SpmBpe final : public SpmEncoder {
 public:
  SpmBpe(const ModelSpec& spec, const Trie& user_symbols, std::uint32_t unknown)
      : spec_(spec), user_symbols_(user_symbols), unknown_(unknown) {
    for (std::uint32_t id = 0; id < spec.pieces.size(); ++id) {
      if (mergeable(spec.pieces[id].type)) {
        symbols_.add(spec.pieces[id].text, id);
      }
    }
    std::uint32_t next = static_cast<std::uint32_t>(spec.pieces.size());
    for (const spm::SpmPiece& piece : spec.pieces) {
      const char* end = piece.text.data() + piece.text.size();
      for (const char* p = piece.text.data(); mergeable(piece.type) && p < end;) {
        const std::string_view character(p, unicode::decode(p, end).size);
        if (!symbols_.find(character)) {
          symbols_.add(character, next++);
        }
        p += character.size();
      }
    }
    add_merges();
  }

  void encode(std::string_view text, SpmScratch& scratch, const Put& put) const override {
    std::vector<std::uint32_t>& ids = scratch.symbols;
    ids.clear();
    std::vector<std::string_view> others;  // the text of each kOther, in order
    for (std::size_t at = 0; at < text.size();) {
      const Trie::Match symbol = user_symbols_.longest(text.substr(at));
      if (symbol.size > 0) {
        ids.push_back(Merges::kFrozen | symbol.value);
        at += symbol.size;
        continue;
      }
      const std::string_view character = text.substr(at, unicode::decode(text.data() + at, text.data() + text.size()).size);
      const auto id = symbols_.find(character);
      ids.push_back(id.value_or(kOther));
      if (!id) {
        others.push_back(character);
      }
      at += character.size();
    }
    merges_.apply(ids, scratch.merges);
    auto other = others.begin();
    for (const std::uint32_t id : ids) {
      if (id == kOther) {
        put(*other++, unknown_);
      } else if ((id & Merges::kFrozen) != 0) {
        put(spec_.pieces[id & ~Merges::kFrozen].text, id & ~Merges::kFrozen);
      } else {
        resegment(id, put);
      }
    }
  }

 private:
  static constexpr std::uint32_t kOther = Merges::kFrozen | 0x7ffffffeU;  // all ones would be FlatMap's empty key

  static bool mergeable(PieceType type) {
    return type == PieceType::normal || type == PieceType::user_defined || type == PieceType::unused;
  }

  void add_merges() {
    std::vector<float> scores;
    for (const spm::SpmPiece& piece : spec_.pieces) {
      scores.push_back(piece.score);
    }
    std::sort(scores.begin(), scores.end(), std::greater<>());
    scores.erase(std::unique(scores.begin(), scores.end()), scores.end());
    for (std::uint32_t id = 0; id < spec_.pieces.size(); ++id) {
      const spm::SpmPiece& piece = spec_.pieces[id];
      if (!mergeable(piece.type) || symbols_.find(piece.text) != id) {
        continue;
      }
      const auto rank =
          static_cast<std::uint32_t>(std::lower_bound(scores.begin(), scores.end(), piece.score, std::greater<>()) - scores.begin());
      for (std::size_t cut = 1; cut < piece.text.size(); ++cut) {
        const auto left = symbols_.find(std::string_view(piece.text).substr(0, cut));
        const auto right = left ? symbols_.find(std::string_view(piece.text).substr(cut)) : std::nullopt;
        if (right) {
          merges_.add(*left, *right, rank, id);
          if (piece.type == PieceType::unused) {
            parts_[id].emplace_back(*left, *right);
          }
        }
      }
    }
  }

  /// Pieces marked unused are merged over, and taken apart again at the end.
  void resegment(std::uint32_t id, const Put& put) const {
    if (id >= spec_.pieces.size()) {
      put(*symbols_.token(id), unknown_);
      return;
    }
    const auto parts = spec_.pieces[id].type == PieceType::unused ? parts_.find(id) : parts_.end();
    if (parts == parts_.end()) {
      put(spec_.pieces[id].text, id);
      return;
    }
    resegment(parts->second.back().first, put);
    resegment(parts->second.back().second, put);
  }

  const ModelSpec& spec_;
  const Trie& user_symbols_;
  std::uint32_t unknown_;
  Vocabulary symbols_;
  Merges merges_;
  std::map<std::uint32_t, std::vector<std::pair<std::uint32_t, std::uint32_t>>> parts_;
};

/// The most probable segmentation, in single precision as SentencePiece computes it.
class SpmUnigram final : public SpmEncoder {
 public:
  SpmUnigram(const ModelSpec& spec, std::uint32_t unknown) : spec_(spec), unknown_(unknown) {
    for (std::uint32_t id = 0; id < spec.pieces.size(); ++id) {
      const spm::SpmPiece& piece = spec.pieces[id];
      if (piece.type == PieceType::normal || piece.type == PieceType::user_defined || piece.type == PieceType::unused) {
        trie_.add(piece.text, id);
      }
      if (piece.type == PieceType::normal) {
        best_ = std::max(best_, piece.score);
        worst_ = std::min(worst_, piece.score);
      }
    }
  }

  void encode(std::string_view text, SpmScratch& scratch, const Put& put) const override {
    search(text, scratch);
    std::vector<std::uint32_t>& ends = scratch.ends;
    ends.clear();
    for (std::size_t end = text.size(); end > 0; end = scratch.from[end]) {
      ends.push_back(static_cast<std::uint32_t>(end));
    }
    std::for_each(ends.rbegin(), ends.rend(),
                  [&](std::uint32_t end) { put(text.substr(scratch.from[end], end - scratch.from[end]), scratch.symbols[end]); });
  }

 private:
  static constexpr std::uint32_t kUnset = 0xffffffff;
  static constexpr float kUnknownPenalty = 10.0F;

  void search(std::string_view text, SpmScratch& scratch) const {
    scratch.scores.assign(text.size() + 1, 0);
    scratch.from.assign(text.size() + 1, kUnset);
    scratch.symbols.assign(text.size() + 1, 0);
    const auto offer = [&](std::size_t begin, std::size_t end, double score, std::uint32_t id) {
      if (scratch.from[end] == kUnset || score > scratch.scores[end]) {
        scratch.scores[end] = static_cast<float>(score);
        scratch.from[end] = static_cast<std::uint32_t>(begin);
        scratch.symbols[end] = id;
      }
    };
    const float unknown_score = worst_ - kUnknownPenalty;
    const char* stop = text.data() + text.size();
    for (std::size_t at = 0; at < text.size();) {
      const std::size_t size = unicode::decode(text.data() + at, stop).size;
      const float so_far = scratch.scores[at];
      bool single = false;
      trie_.prefixes(text.substr(at), [&](std::size_t length, std::uint32_t id) {
        const spm::SpmPiece& piece = spec_.pieces[id];
        if (piece.type == PieceType::unused) {
          return;
        }
        // A user-defined symbol gets a score that always wins.
        const double score = piece.type == PieceType::user_defined ? static_cast<float>(length) * best_ - 0.1 : piece.score;
        offer(at, at + length, score + so_far, id);
        single = single || length == size;
      });
      if (!single) {
        offer(at, at + size, unknown_score + so_far, unknown_);
      }
      at += size;
    }
  }

  const ModelSpec& spec_;
  std::uint32_t unknown_;
  Trie trie_;
  float best_ = FLT_MIN;
  float worst_ = FLT_MAX;
};

/// Words (from blank to blank) or characters.
class SpmPlain final : public SpmEncoder {
 public:
  SpmPlain(const ModelSpec& spec, const Trie& user_symbols, const Vocabulary& ids, std::uint32_t unknown)
      : words_(spec.type == spm::ModelType::word),
        suffix_(spec.whitespace_as_suffix),
        user_symbols_(user_symbols),
        ids_(ids),
        unknown_(unknown) {}

  void encode(std::string_view text, SpmScratch& /*scratch*/, const Put& put) const override {
    while (!text.empty()) {
      const std::string_view piece = text.substr(0, words_ ? word_size(text) : character_size(text));
      put(piece, ids_.find(piece).value_or(unknown_));
      text.remove_prefix(piece.size());
    }
  }

 private:
  std::size_t word_size(std::string_view text) const {
    const std::size_t blank = text.find(spm::kBlank, suffix_ ? 0 : spm::kBlank.size() * (text.starts_with(spm::kBlank) ? 1 : 0));
    return blank == std::string_view::npos ? text.size() : blank + (suffix_ ? spm::kBlank.size() : 0);
  }
  std::size_t character_size(std::string_view text) const {
    const Trie::Match symbol = user_symbols_.longest(text);
    return symbol.size > 0 ? symbol.size : unicode::decode(text.data(), text.data() + text.size()).size;
  }

  bool words_;
  bool suffix_;
  const Trie& user_symbols_;
  const Vocabulary& ids_;
  std::uint32_t unknown_;
};

}  // namespace

std::unique_ptr<SpmEncoder> make_spm_encoder(const ModelSpec& spec, const Trie& user_symbols, const Vocabulary& ids,
                                             std::uint32_t unknown) {
  switch (spec.type) {
    case spm::ModelType::bpe: return std::make_unique<SpmBpe>(spec, user_symbols, unknown);
    case spm::ModelType::unigram: return std::make_unique<SpmUnigram>(spec, unknown);
    default: return std::make_unique<SpmPlain>(spec, user_symbols, ids, unknown);
  }
}

}  // namespace kf
