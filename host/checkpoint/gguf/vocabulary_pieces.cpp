// SentencePiece's BPE, which llama.cpp calls llama.

#include "checkpoint/gguf/vocabulary.h"
#include "core/error.h"
#include "core/plain_file.h"
#include "data/tokenizer/sentencepiece_model.h"

namespace kf::gguf {
namespace {

constexpr std::uint64_t kMostBytes = std::uint64_t{1} << 30;

}  // namespace

Vocabulary read_sentencepiece(const fs::path& file) {
  const spm::ModelSpec spec = spm::parse_model(read_regular_file(file, kMostBytes), file.string());
  const auto check = [&](bool holds, const char* what) {
    KF_CHECK(holds, Code::data, "{}: {}, which llama.cpp's tokenizer of this kind does not do", file, what);
  };
  check(spec.type == spm::ModelType::bpe && spec.byte_fallback, "it is no BPE that spells unknown characters by bytes");
  check(spec.normalizer.charsmap.empty(), "it changes characters (its normalizer has rules)");
  check(!spec.normalizer.remove_extra_whitespaces, "it leaves out blanks");
  check(spec.normalizer.escape_whitespaces && !spec.whitespace_as_suffix, "it spells blanks in another way");
  Vocabulary out;
  out.model = "llama";
  out.add_space_prefix = spec.normalizer.add_dummy_prefix;
  for (const spm::SpmPiece& piece : spec.pieces) {
    if (piece.type == spm::PieceType::unknown) {
      out.unknown = static_cast<std::int64_t>(out.tokens.size());
    }
    out.tokens.push_back(piece.text);
    out.types.push_back(static_cast<TokenType>(piece.type));  // the same numbers
    out.scores.push_back(piece.score);
  }
  return out;
}

}  // namespace kf::gguf
