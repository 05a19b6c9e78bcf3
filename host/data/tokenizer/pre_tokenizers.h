#pragma once
// The pre-tokenizers of tokenizer.json: they cut text into pieces that the model encodes one by one.

#include <memory>
#include <optional>

#include "data/tokenizer/json.h"
#include "data/tokenizer/pieces.h"
#include "data/tokenizer/scanners.h"

namespace kf {

class PreTokenizer {
 public:
  virtual ~PreTokenizer() = default;
  /// Replaces each piece by its parts.
  virtual void split(TextPieces& pieces) const = 0;
};

struct PreTokenizing {
  std::vector<std::unique_ptr<PreTokenizer>> parts;
  /// The last step is to spell bytes by letters; it is left out here where the model takes bytes.
  bool spells_bytes = false;
  /// All there is to do before that is to cut by this pattern.
  std::optional<scan::Pattern> only_pattern;
};

/// `model_takes_bytes`: whether the model encodes bytes rather than their letters, so that the spelling at the end can be left out.
PreTokenizing make_pre_tokenizers(const json::Place& spec, bool model_takes_bytes);

}  // namespace kf
