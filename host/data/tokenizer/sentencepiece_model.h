#pragma once
// SentencePiece models: what the file says, and the text as its pieces see it.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "data/tokenizer/charsmap.h"
#include "data/tokenizer/trie.h"

namespace kf::spm {

enum class PieceType : std::uint8_t { normal = 1, unknown = 2, control = 3, user_defined = 4, unused = 5, byte = 6 };
enum class ModelType : std::uint8_t { unigram = 1, bpe = 2, word = 3, character = 4 };

struct SpmPiece {
  std::string text;
  float score = 0;
  PieceType type = PieceType::normal;
};

struct NormalizerSpec {
  std::string charsmap;
  bool add_dummy_prefix = true;
  bool remove_extra_whitespaces = true;
  bool escape_whitespaces = true;
};

struct ModelSpec {
  std::vector<SpmPiece> pieces;
  ModelType type = ModelType::unigram;
  bool byte_fallback = false;
  bool whitespace_as_suffix = false;
  std::string unk_surface = " \xe2\x81\x87 ";
  std::string unk_piece = "<unk>";
  std::string bos_piece = "<s>";
  std::string eos_piece = "</s>";
  std::string pad_piece = "<pad>";
  NormalizerSpec normalizer;
  NormalizerSpec denormalizer;
  bool denormalizes = false;
};

/// Throws Code::data where the bytes are no such model, naming `where`.
ModelSpec parse_model(std::string_view bytes, const std::string& where);

/// The blank as pieces spell it.
inline constexpr std::string_view kBlank = "\xe2\x96\x81";

class SpmNormalizer {
 public:
  SpmNormalizer(const ModelSpec& spec, const NormalizerSpec& rules, const std::string& where);
  std::string apply(std::string_view text) const;
  /// User-defined symbols, which no rule changes and no merge touches: by id.
  const Trie& symbols() const { return symbols_; }

 private:
  struct Step {
    std::string_view normal;
    std::size_t size;  // bytes of the text
  };
  Step step(std::string_view text) const;

  NormalizerSpec rules_;
  bool whitespace_as_suffix_;
  Charsmap charsmap_;
  Trie symbols_;
};

}  // namespace kf::spm
