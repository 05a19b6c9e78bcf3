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
enum class TokenType : std::int32_t { normal = 1, control = 3, user_defined = 4, unused = 5 };

struct Vocabulary {
  std::string split;  // how a text is cut before merging: tokenizer.ggml.pre
  std::vector<std::string> tokens;
  std::vector<TokenType> types;
  std::vector<std::string> merges;
  std::optional<std::int64_t> bos, eos, pad;
  bool begins_with_bos = false;
  std::string chat_template;
};

/// Of byte-level BPE: a tokenizer.json, or a folder with one; bytes where `path` is empty. `rows`: ids of the model, which may be more.
/// Throws Code::data for tokenizers of other kinds, and for a cutting of texts that llama.cpp does not know.
Vocabulary read_vocabulary(const fs::path& path, const Tokenizer& tokenizer, std::int64_t rows);

void write(const Vocabulary& vocabulary, File& out);

}  // namespace kf::gguf
