#include "data/token_file.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <fstream>
#include <vector>

#include "core/error.h"
#include "core/text.h"
#include "data/read/megatron.h"

namespace kf {
namespace {

constexpr std::array<std::string_view, 4> kNames{"uint16", "uint32", "int32", "int64"};
constexpr std::array<TokenType, 4> kTypes{TokenType::uint16, TokenType::uint32, TokenType::int32, TokenType::int64};
constexpr std::int64_t kProbe = 4096;  // ids looked at to tell one type from another

/// Calls `f` with a value of the C++ type.
template <class F>
auto with_type(TokenType type, F f) {
  switch (type) {
    case TokenType::uint16: return f(std::uint16_t{});
    case TokenType::uint32: return f(std::uint32_t{});
    case TokenType::int32: return f(std::int32_t{});
    case TokenType::int64: break;
  }
  return f(std::int64_t{});
}

/// Ids of a possibly unaligned array, widened. The loop has no branch and becomes vector code.
void widen(const std::byte* from, TokenType type, std::span<std::int64_t> out) {
  with_type(type, [&](auto sample) {
    using Id = decltype(sample);
    for (std::size_t i = 0; i < out.size(); ++i) {
      Id id;
      std::memcpy(&id, from + i * sizeof(Id), sizeof(Id));
      out[i] = static_cast<std::int64_t>(id);
    }
  });
}

/// Negative ids are huge as unsigned numbers, so one comparison is enough.
bool all_below(std::span<const std::int64_t> ids, std::int64_t vocab_size) {
  std::uint64_t largest = 0;
  for (const std::int64_t id : ids) {
    largest = std::max(largest, static_cast<std::uint64_t>(id));
  }
  return largest < static_cast<std::uint64_t>(vocab_size);
}

TokenLayout raw_layout(std::span<const std::byte> bytes, TokenType type, const fs::path& path) {
  const std::size_t width = token_width(type);
  KF_CHECK(bytes.size() % width == 0, Code::data,
           "{}: {} bytes are not a whole number of {} ids ({} bytes each); the file is cut off, or data.token_dtype is another type", path,
           bytes.size(), token_type_name(type), width);
  return {type, 0, static_cast<std::int64_t>(bytes.size() / width), true};
}

TokenLayout layout_of(const MappedFile& file, const TokenFileOptions& options) {
  const auto bytes = file.bytes();
  const bool npy = lower(file.path().extension().string()) == ".npy";
  const bool marked = !bytes.empty() && bytes[0] == std::byte{0x93};
  if (npy && (marked || bytes.empty() || !options.raw_type)) {
    return npy_layout(bytes, file.path());
  }
  if (const std::optional<MegatronIndex> index = find_megatron_index(file.path())) {
    KF_CHECK(!options.raw_type || *options.raw_type == index->type, Code::data, "{}: its index says {}, data.token_dtype says {}",
             file.path(), token_type_name(index->type), token_type_name(*options.raw_type));
    return {index->type, 0, index->tokens, false};
  }
  return raw_layout(bytes, options.raw_type.value_or(default_token_type(options.vocab_size)), file.path());
}

}  // namespace

std::string_view token_type_name(TokenType type) { return kNames[static_cast<std::size_t>(type)]; }

std::optional<TokenType> token_type_named(std::string_view name) {
  const auto* const at = std::find(kNames.begin(), kNames.end(), name);
  return at == kNames.end() ? std::nullopt : std::optional(kTypes[static_cast<std::size_t>(at - kNames.begin())]);
}

std::size_t token_width(TokenType type) {
  return with_type(type, [](auto sample) { return sizeof(sample); });
}

TokenType default_token_type(std::int64_t vocab_size) { return vocab_size <= 65536 ? TokenType::uint16 : TokenType::uint32; }

TokenFile::TokenFile(const fs::path& path, const TokenFileOptions& options)
    : file_(path), layout_(layout_of(file_, options)), vocab_size_(options.vocab_size) {
  if (layout_.raw) {
    check_width();
  }
}

void TokenFile::read(std::int64_t first, std::span<std::int64_t> out) const {
  const auto wanted = static_cast<std::int64_t>(out.size());
  KF_CHECK(first >= 0 && wanted <= layout_.tokens && first <= layout_.tokens - wanted, Code::data,
           "{}: ids {} to {} asked for, the file has {}", path(), first, first + wanted, layout_.tokens);
  widen(file_.bytes().data() + layout_.offset + static_cast<std::size_t>(first) * token_width(layout_.type), layout_.type, out);
  if (!all_below(out, vocab_size_)) [[unlikely]] {
    const auto bad = std::find_if(out.begin(), out.end(), [&](std::int64_t id) { return id < 0 || id >= vocab_size_; });
    refuse(first + (bad - out.begin()), *bad);
  }
}

/// Ids of twice the width look like ids and zeros in turn: all of them valid, and every second one wrong.
void TokenFile::check_width() const {
  if (layout_.type == TokenType::int64 || layout_.tokens < 16) {
    return;
  }
  std::vector<std::int64_t> ids(static_cast<std::size_t>(std::min(kProbe, layout_.tokens / 2 * 2)));
  widen(file_.bytes().data(), layout_.type, ids);
  std::size_t low = 0;   // even places that are not zero
  std::size_t high = 0;  // odd ones
  for (std::size_t i = 0; i < ids.size(); i += 2) {
    low += ids[i] != 0 ? 1 : 0;
    high += ids[i + 1] != 0 ? 1 : 0;
  }
  const TokenType wider = layout_.type == TokenType::uint16 ? TokenType::uint32 : TokenType::int64;
  KF_CHECK(high != 0 || low * 3 < ids.size() / 2, Code::data,
           "{}: read as {}, every second id is 0, as in a file of {}; set data.token_dtype = \"{}\"", path(), token_type_name(layout_.type),
           token_type_name(wider), token_type_name(wider));
}

void TokenFile::refuse(std::int64_t position, std::int64_t id) const {
  fail(Code::data, "{}: token {} (from 0) is id {}, but ids go from 0 to {} (model.vocab_size = {}){}", path(), position, id,
       vocab_size_ - 1, vocab_size_, other_type_hint());
}

/// Of raw files: the type as which the start of the file would be valid.
std::string TokenFile::other_type_hint() const {
  if (!layout_.raw) {
    return "; the file was made for a larger vocabulary";
  }
  for (const TokenType type : kTypes) {
    const std::size_t width = token_width(type);
    if (width == token_width(layout_.type) || file_.bytes().size() % width != 0) {
      continue;
    }
    std::vector<std::int64_t> ids(std::min<std::size_t>(kProbe, file_.bytes().size() / width));
    widen(file_.bytes().data(), type, ids);
    if (all_below(ids, vocab_size_)) {
      return format("; read as {}, the file looks like {}: set data.token_dtype = \"{}\"", token_type_name(layout_.type),
                    token_type_name(type), token_type_name(type));
    }
  }
  return format("; read as {}: is data.token_dtype right?", token_type_name(layout_.type));
}

void write_token_file(const fs::path& path, std::span<const std::int64_t> ids, TokenType type) {
  std::string content;
  if (lower(path.extension().string()) == ".npy") {
    constexpr std::array<std::string_view, 4> descr{"<u2", "<u4", "<i4", "<i8"};
    std::string header =
        format("{'descr': '{}', 'fortran_order': False, 'shape': ({},), }", descr[static_cast<std::size_t>(type)], ids.size());
    header.resize((header.size() + 11 + 63) / 64 * 64 - 11, ' ');  // data starts at a multiple of 64, after magic, version and length
    header += '\n';
    content = std::string("\x93NUMPY\x01\x00", 8);
    content += static_cast<char>(header.size() & 255);
    content += static_cast<char>(header.size() >> 8);
    content += header;
  }
  with_type(type, [&](auto sample) {
    using Id = decltype(sample);
    for (std::size_t i = 0; i < ids.size(); ++i) {
      const Id id = static_cast<Id>(ids[i]);
      KF_CHECK(ids[i] >= 0 && static_cast<std::int64_t>(id) == ids[i], Code::data, "{}: token {} is id {}, which {} cannot hold", path, i,
               ids[i], token_type_name(type));
      content.append(reinterpret_cast<const char*>(&id), sizeof(Id));
    }
  });
  write_file_atomic(path, content);
}

}  // namespace kf
