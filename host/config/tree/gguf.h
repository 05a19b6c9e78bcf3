#pragma once
// Headers of GGUF files (llama.cpp's), versions 2 and 3: keys with values, and where which tensors lie.

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "config/tree/node.h"
#include "core/fs.h"

namespace kf::gguf {

/// How numbers are stored; the values are the format's. Its other types are not read.
enum class Type : std::uint32_t { f32 = 0, f16 = 1, q8_0 = 8, bf16 = 30 };
constexpr std::int64_t kBlock = 32;  // numbers that share a scale in q8_0

/// "F32", "F16", "BF16", "Q8_0".
std::string_view name_of(Type type);

struct TensorPlace {
  std::string name;
  std::vector<std::int64_t> shape;  // the slowest dim first, as torch has it
  Type type = Type::f32;
  std::uint64_t begin = 0, bytes = 0;  // in the file
};

struct Header {
  std::uint32_t version = 0;
  config::Table keys;                // long lists, as the words of a tokenizer are, are null
  std::vector<TensorPlace> tensors;  // in the file's order; they lie in it, each by itself

  const TensorPlace* find(std::string_view name) const;
  /// "llama"; "" where it names none.
  std::string architecture() const;
};

/// Those that are read and written: gemma, llama (with Mistral), qwen2, qwen3.
const std::vector<std::string>& known_architectures();
/// Whether `architecture` is one of them.
bool is_known(const std::string& architecture);

/// Whether a file begins as such a one does.
bool is_gguf(std::span<const std::byte> bytes);
/// Whether an ordinary file is there that does; opens nothing else.
bool is_gguf_file(const fs::path& path);

/// Of all of a file's bytes; `path` is for messages. Nothing that stands there is trusted: lengths, counts, offsets and sizes are compared
/// with what the file has. Throws Code::checkpoint naming what is wrong: another version, a type of numbers that is not read, tensors that
/// overlap or lie outside, one of several files of a model, ...
Header read_header(std::span<const std::byte> bytes, const fs::path& path);

}  // namespace kf::gguf
