#include <algorithm>

#include "core/error.h"
#include "data/tokenizer/added_tokens.h"
#include "data/tokenizer/file_tokenizer.h"
#include "data/tokenizer/scratch.h"
#include "data/tokenizer/sentencepiece_encoders.h"
#include "data/tokenizer/sentencepiece_model.h"
#include "data/tokenizer/unicode.h"
#include "data/tokenizer/vocabulary.h"

namespace kf {
namespace {

using spm::ModelSpec;
using spm::PieceType;

class SentencePiece final : public FileTokenizer {
 public:
  SentencePiece(const std::string& content, const fs::path& file)
      : spec_(spm::parse_model(content, file.string())), normalizer_(spec_, spec_.normalizer, file.string()) {
    read_pieces(file);
    if (spec_.denormalizes) {
      denormalizer_.emplace(spec_, spec_.denormalizer, file.string());
    }
    encoder_ = make_spm_encoder(spec_, normalizer_.symbols(), ids_, unknown_);
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
