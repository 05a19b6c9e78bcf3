#pragma once
// One file of token ids, mapped: `.npy` with its header, or raw `.bin`.

#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/fs.h"
#include "core/source_watch.h"

namespace kf {

/// How ids are stored, little-endian.
enum class TokenType { uint16, uint32, int32, int64 };

std::string_view token_type_name(TokenType type);
/// By name ("uint16"); nothing for any other word.
std::optional<TokenType> token_type_named(std::string_view name);
std::size_t token_width(TokenType type);
/// Of raw files when nobody says: uint16 up to a vocabulary of 65536, else uint32. Never guessed from the length of a file.
TokenType default_token_type(std::int64_t vocab_size);

struct TokenFileOptions {
  std::optional<TokenType> raw_type;                                   // data.token_dtype; absent: by the vocabulary
  std::int64_t vocab_size = std::numeric_limits<std::int64_t>::max();  // ids must lie below it
};

/// Where the ids of a file lie.
struct TokenLayout {
  TokenType type = TokenType::uint16;
  std::size_t offset = 0;  // bytes before the first id
  std::int64_t tokens = 0;
  bool raw = false;  // the type is an assumption: the file does not say
};

/// Whether the bytes begin with NumPy's mark, whatever the file is called.
bool has_npy_mark(std::span<const std::byte> bytes);

/// Reads an `.npy` header, format versions 1 to 3. Throws Code::data for anything but one dimension of a TokenType, or when the file is
/// shorter or longer than the header says.
TokenLayout npy_layout(std::span<const std::byte> bytes, const fs::path& path);

class TokenFile {
 public:
  /// What a file is, its head says: NumPy's, llm.c's, or none, which is raw. An `.npy` without a header (some tools write such) is read as
  /// raw where raw_type says how. Beside a `.bin`, the index of a Megatron data set (`.idx`) says the type. A raw_type that contradicts any
  /// of these is refused, and so are files of other programs that hold no bare ids.
  TokenFile(const fs::path& path, const TokenFileOptions& options);

  std::int64_t tokens() const { return layout_.tokens; }
  TokenType type() const { return layout_.type; }
  std::int64_t vocab_size() const { return vocab_size_; }
  const fs::path& path() const { return file_.path(); }
  const TokenLayout& layout() const { return layout_; }
  std::span<const std::byte> bytes() const { return file_.bytes(); }

  /// Ids first, first + 1, ... into `out`. Throws Code::data naming file, position and id when one is negative or not below the vocabulary.
  void read(std::int64_t first, std::span<std::int64_t> out) const;
  /// The largest of `count` ids from `first` on, as an unsigned number: a negative id is larger than any other.
  std::uint64_t largest(std::int64_t first, std::int64_t count) const;

 private:
  void check_width() const;
  std::vector<std::int64_t> probes(TokenType type, std::int64_t around) const;
  [[noreturn]] void refuse(std::int64_t position, std::int64_t id) const;
  std::string other_type_hint(std::int64_t position) const;

  MappedFile file_;
  SourceWatch watch_;
  TokenLayout layout_;
  std::int64_t vocab_size_;
};

/// Writes ids as `.npy` or raw, by suffix. Throws Code::data when an id does not fit the type.
void write_token_file(const fs::path& path, std::span<const std::int64_t> ids, TokenType type);

}  // namespace kf
