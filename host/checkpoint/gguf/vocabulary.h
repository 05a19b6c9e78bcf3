#pragma once
// A tokenizer as GGUF files describe it.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/fs.h"
#include "data/tokenizer/tokenizer.h"

namespace kf::gguf {

class File;

/// What a token is; the values are the format's.
enum class TokenType : std::int32_t { normal = 1, unknown = 2, control = 3, user_defined = 4, unused = 5, byte = 6 };

struct Vocabulary {
  std::string model;  // gpt2: byte-level BPE; llama: BPE of SentencePiece
  std::vector<std::string> tokens;
  std::vector<TokenType> types;
  std::string split;                // gpt2: how a text is cut before merging
  std::vector<std::string> merges;  // gpt2
  std::vector<float> scores;        // llama: the higher, the sooner a piece is merged
  bool add_space_prefix = false;    // llama
  std::optional<std::int64_t> bos, eos, pad, unknown;
  bool begins_with_bos = false;
  std::string chat_template;
};

/// Byte-level BPE of a tokenizer.json, BPE of a tokenizer.model (SentencePiece) with its bytes, each a file or in a folder; bytes where
/// `path` is empty. `rows`: ids of the model, which may be more. Throws Code::data for tokenizers of other kinds, and for a cutting of
/// texts that llama.cpp does not know.
Vocabulary read_vocabulary(const fs::path& path, const Tokenizer& tokenizer, std::int64_t rows);

/// The pieces of a SentencePiece model.
Vocabulary read_sentencepiece(const fs::path& file);

void write(const Vocabulary& vocabulary, File& out);

}  // namespace kf::gguf
