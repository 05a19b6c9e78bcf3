#include <algorithm>
#include <cfloat>
#include <map>

#include "core/error.h"
#include "data/tokenizer/added_tokens.h"
#include "data/tokenizer/file_tokenizer.h"
#include "data/tokenizer/merges.h"
#include "data/tokenizer/scratch.h"
#include "data/tokenizer/sentencepiece_model.h"
#include "data/tokenizer/unicode.h"
#include "data/tokenizer/vocabulary.h"

namespace kf {
namespace {

using spm::ModelSpec;
using spm::PieceType;

struct SpmScratch {
  Merges::Scratch merges;
  std::vector<std::uint32_t> symbols;
  std::vector<float> scores;
  std::vector<std::uint32_t> from;
  std::vector<std::uint32_t> ends;
};

/// How the normalized text becomes ids; the id of the unknown piece once for each unknown stretch.
class SpmEncoder {
 public:
  virtual ~SpmEncoder() = default;
  using Put = std::function<void(std::string_view, std::uint32_t)>;
  virtual void encode(std::string_view text, SpmScratch& scratch, const Put& put) const = 0;
};

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

class SentencePiece final : public FileTokenizer {
 public:
  SentencePiece(const std::string& content, const fs::path& file)
      : spec_(spm::parse_model(content, file.string())), normalizer_(spec_, spec_.normalizer, file.string()) {
    read_pieces(file);
    if (spec_.denormalizes) {
      denormalizer_.emplace(spec_, spec_.denormalizer, file.string());
    }
    if (spec_.type == spm::ModelType::bpe) {
      encoder_ = std::make_unique<SpmBpe>(spec_, normalizer_.symbols(), unknown_);
    } else if (spec_.type == spm::ModelType::unigram) {
      encoder_ = std::make_unique<SpmUnigram>(spec_, unknown_);
    } else {
      encoder_ = std::make_unique<SpmPlain>(spec_, normalizer_.symbols(), ids_, unknown_);
    }
    around_ = surrounding(file.parent_path(), special_, {true, false});
    identify("sentencepiece", content, special_);
  }

  std::size_t append(std::string_view text, std::vector<std::uint32_t>& out, const EncodeOptions& options) const override {
    const auto scratch = scratch_.take();
    if (options.surround != Surround::nothing) {
      out.insert(out.end(), around_.before.begin(), around_.before.end());
    }
    // What people write never makes control symbols: there they are only counted, or refused.
    std::vector<TextStretch> found;
    const SpecialText policy = options.special == SpecialText::error ? SpecialText::error : SpecialText::text;
    const std::size_t count = controls_.find(text, policy, found, options.written);
    for (const TextStretch& stretch : found) {
      if (stretch.token != nullptr) {
        out.push_back(stretch.token->id);
      } else {
        encode_stretch(text.substr(stretch.begin, stretch.end - stretch.begin), out, *scratch);
      }
    }
    if (options.surround == Surround::text) {
      out.insert(out.end(), around_.after.begin(), around_.after.end());
    }
    return count;
  }

  bool reads_special() const override { return false; }
  std::int64_t vocab_size() const override { return static_cast<std::int64_t>(spec_.pieces.size()); }
  std::optional<std::string> token(std::int64_t id) const override {
    return id >= 0 && id < vocab_size() ? std::optional(spec_.pieces[static_cast<std::size_t>(id)].text) : std::nullopt;
  }
  std::optional<std::int64_t> token_id(std::string_view token) const override {
    const auto found = ids_.find(token);
    return found ? std::optional<std::int64_t>(*found) : std::nullopt;
  }
  std::string summary() const override {
    constexpr const char* names[] = {"Unigram", "BPE", "words", "characters"};
    return format("SentencePiece {}, {} ids", names[static_cast<int>(spec_.type) - 1], grouped(vocab_size()));
  }

 protected:
  std::string text_of(const std::vector<std::uint32_t>& ids, bool /*with_special*/) const override {
    std::string out;
    std::string bytes;
    bool at_start = true;
    bool start_blank_seen = false;
    for (const std::uint32_t id : ids) {
      const spm::SpmPiece& piece = spec_.pieces[id];
      if (piece.type == PieceType::byte) {
        bytes += static_cast<char>(byte_of_[id]);
        continue;
      }
      flush(bytes, out);
      at_start = at_start && !start_blank_seen && out.empty();
      start_blank_seen = false;
      if (piece.type == PieceType::control) {
        continue;  // SentencePiece never shows these
      } else if (piece.type == PieceType::unknown) {
        out += spec_.unk_surface;
      } else {
        std::string_view text = piece.text;
        const bool drop = spec_.normalizer.add_dummy_prefix || spec_.normalizer.remove_extra_whitespaces;
        if (at_start && drop && text.starts_with(spm::kBlank)) {
          text.remove_prefix(spm::kBlank.size());
          start_blank_seen = !spec_.normalizer.remove_extra_whitespaces;
        }
        put_blanks(text, out);
      }
    }
    flush(bytes, out);
    return denormalizer_ ? denormalizer_->apply(out) : out;
  }

 private:
  /// As a text of its own: each stretch gets SentencePiece's blank in front, where the model asks for one.
  void encode_stretch(std::string_view text, std::vector<std::uint32_t>& out, SpmScratch& scratch) const {
    const std::string normal = normalizer_.apply(text);
    bool after_unknown = false;
    encoder_->encode(normal, scratch, [&](std::string_view piece, std::uint32_t id) {
      if (id != unknown_) {
        out.push_back(id);
        after_unknown = false;
      } else if (spec_.byte_fallback) {
        for (const char c : piece) {
          out.push_back(bytes_[static_cast<unsigned char>(c)]);
        }
      } else {
        if (!after_unknown) {
          out.push_back(id);
        }
        after_unknown = true;
      }
    });
  }

  void read_pieces(const fs::path& file) {
    std::optional<std::uint32_t> unknown;
    byte_of_.resize(spec_.pieces.size());
    std::vector<std::optional<std::uint32_t>> bytes(256);
    for (std::uint32_t id = 0; id < spec_.pieces.size(); ++id) {
      const spm::SpmPiece& piece = spec_.pieces[id];
      KF_CHECK(!piece.text.empty(), Code::data, "{}: piece {} is empty", file, id);
      KF_CHECK(!ids_.find(piece.text), Code::data, "{}: the piece {} is there twice", file, kf::quoted(piece.text));
      ids_.add(piece.text, id);
      if (piece.type == PieceType::unknown) {
        KF_CHECK(!unknown, Code::data, "{}: there are two unknown pieces, {} and {}", file, *unknown, id);
        unknown = id;
      } else if (piece.type == PieceType::byte) {
        const std::size_t value = byte_value(piece.text);
        KF_CHECK(value < 256, Code::data, "{}: {} is no byte piece, <0x00> to <0xFF>", file, kf::quoted(piece.text));
        bytes[value] = id;
        byte_of_[id] = static_cast<unsigned char>(value);
      } else if (piece.type == PieceType::control) {
        AddedToken token;
        token.content = piece.text;
        token.id = id;
        token.special = true;
        controls_.add(token, piece.text);
      }
    }
    KF_CHECK(unknown, Code::data, "{}: there is no unknown piece", file);
    unknown_ = *unknown;
    for (std::size_t byte = 0; spec_.byte_fallback && byte < 256; ++byte) {
      KF_CHECK(bytes[byte], Code::data, "{}: trainer_spec.byte_fallback is on, and there is no piece for the byte {}", file, byte);
      bytes_.push_back(*bytes[byte]);
    }
    const auto control = [&](const std::string& name) -> std::optional<std::int64_t> {
      const auto id = ids_.find(name);
      return id && spec_.pieces[*id].type == PieceType::control ? std::optional<std::int64_t>(*id) : std::nullopt;
    };
    special_ = {control(spec_.bos_piece), control(spec_.eos_piece), control(spec_.pad_piece)};
  }

  static std::size_t byte_value(std::string_view text) {
    constexpr std::string_view digits = "0123456789ABCDEF";
    if (text.size() != 6 || !text.starts_with("<0x") || text[5] != '>') {
      return 256;
    }
    const std::size_t high = digits.find(text[3]);
    const std::size_t low = digits.find(text[4]);
    return high == std::string_view::npos || low == std::string_view::npos ? 256 : 16 * high + low;
  }

  /// Byte pieces become characters; each byte that is no UTF-8 becomes U+FFFD.
  static void flush(std::string& bytes, std::string& out) {
    const char* end = bytes.data() + bytes.size();
    for (const char* p = bytes.data(); p < end;) {
      const unicode::Decoded c = unicode::decode(p, end);
      c.cp == unicode::kInvalid ? out.append(unicode::kReplacement) : out.append(p, c.size);
      p += c.size;
    }
    bytes.clear();
  }
  static void put_blanks(std::string_view text, std::string& out) {
    for (std::size_t at = text.find(spm::kBlank); at != std::string_view::npos; at = text.find(spm::kBlank)) {
      out.append(text.substr(0, at)).append(" ");
      text.remove_prefix(at + spm::kBlank.size());
    }
    out += text;
  }

  ModelSpec spec_;
  spm::SpmNormalizer normalizer_;
  std::optional<spm::SpmNormalizer> denormalizer_;
  Vocabulary ids_;
  std::uint32_t unknown_ = 0;
  std::vector<std::uint32_t> bytes_;  // ids, by byte
  std::vector<unsigned char> byte_of_;
  SpecialIds special_;
  PostProcessor around_;
  AddedTokens controls_;
  std::unique_ptr<SpmEncoder> encoder_;
  mutable ScratchPool<SpmScratch> scratch_;
};

}  // namespace

std::unique_ptr<FileTokenizer> open_sentencepiece(const std::string& content, const fs::path& file) {
  return std::make_unique<SentencePiece>(content, file);
}

}  // namespace kf
