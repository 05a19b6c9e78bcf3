#include "data/file/token_file.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <type_traits>
#include <vector>

#include "core/error.h"
#include "core/text.h"
#include "data/file/foreign_head.h"
#include "data/file/megatron.h"

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

/// What a header or an index says of the type must be what the job says, where it says anything.
void check_stated(const TokenLayout& layout, const TokenFileOptions& options, const fs::path& path, const char* who) {
  KF_CHECK(!options.raw_type || *options.raw_type == layout.type, Code::data,
           "{}: {} says {}, data.token_dtype says {}; leave data.token_dtype out, it is for files without a header", path, who,
           token_type_name(layout.type), token_type_name(*options.raw_type));
}

/// Megatron names both halves of a data set so; ids without their index are of an unknown type.
void check_whole_pair(const fs::path& path) {
  const std::string stem = path.stem().string();
  KF_CHECK(!(stem.ends_with("_text_document") || stem.ends_with("_text_sentence")), Code::data,
           "{} looks like half of a Megatron data set: {}.idx, which says the type of its ids and where documents begin, is not beside it; "
           "bring it, or set data.token_dtype to the type",
           path, stem);
}

TokenLayout layout_of(const MappedFile& file, const TokenFileOptions& options) {
  const auto bytes = file.bytes();
  const fs::path& path = file.path();
  const bool npy = lower(path.extension().string()) == ".npy";
  const bool marked = has_npy_mark(bytes);
  const bool maybe_marked = !bytes.empty() && bytes[0] == std::byte{0x93};
  if (marked || (npy && (maybe_marked || bytes.empty() || !options.raw_type))) {
    const TokenLayout layout = npy_layout(bytes, path);
    check_stated(layout, options, path, "its header");
    return layout;
  }
  if (const std::optional<MegatronIndex> index = find_megatron_index(path)) {
    const TokenLayout layout{index->type, 0, index->tokens, false};
    check_stated(layout, options, path, "its index");
    return layout;
  }
  if (const std::optional<TokenLayout> layout = llmc_layout(bytes, path)) {
    check_stated(*layout, options, path, "llm.c's header");
    return *layout;
  }
  refuse_foreign(bytes, path);
  if (!options.raw_type) {
    check_whole_pair(path);
  }
  return raw_layout(bytes, options.raw_type.value_or(default_token_type(options.vocab_size)), path);
}

/// Whether ids of a type are the halves of wider ones: ids and zeros in turn, all of them valid, and every second one wrong. Above a
/// vocabulary of 65536 the upper halves of uint32 are small numbers, not all of them 0. One in 64 may be anything: a file may hold a wrong
/// id.
bool are_halves(std::span<const std::int64_t> ids, TokenType type) {
  if (token_width(type) == sizeof(std::int64_t) || ids.size() < 16) {
    return false;
  }
  std::size_t low = 0;    // even places that are not zero
  std::size_t high = 0;   // odd ones
  std::size_t large = 0;  // odd places that are no upper half of an id below 2^20
  std::int64_t largest_low = 0;
  for (std::size_t i = 0; i + 1 < ids.size(); i += 2) {
    low += ids[i] != 0 ? 1 : 0;
    high += ids[i + 1] != 0 ? 1 : 0;
    largest_low = std::max(largest_low, ids[i]);
    large += ids[i + 1] >= 16 ? 1 : 0;
  }
  const std::size_t pairs = ids.size() / 2;
  const bool zeros = high * 64 <= pairs;
  const bool small = type == TokenType::uint16 && large * 64 <= pairs && largest_low > 255;
  return low * 3 >= pairs && (zeros || small);
}

TokenType wider_than(TokenType type) { return type == TokenType::uint16 ? TokenType::uint32 : TokenType::int64; }

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
    : file_(path), watch_(path), layout_(layout_of(file_, options)), vocab_size_(options.vocab_size) {
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

std::uint64_t TokenFile::largest(std::int64_t first, std::int64_t count) const {
  KF_CHECK(first >= 0 && count >= 0 && count <= layout_.tokens && first <= layout_.tokens - count, Code::data,
           "{}: ids {} to {} asked for, the file has {}", path(), first, first + count, layout_.tokens);
  const std::byte* const from = file_.bytes().data() + layout_.offset + static_cast<std::size_t>(first) * token_width(layout_.type);
  return with_type(layout_.type, [&](auto sample) {
    using Id = decltype(sample);
    using Bits = std::make_unsigned_t<Id>;
    Bits most = 0;
    for (std::size_t i = 0; i < static_cast<std::size_t>(count); ++i) {
      Bits id;
      std::memcpy(&id, from + i * sizeof(Id), sizeof(Id));
      most = std::max(most, id);
    }
    // A negative int32 becomes a large uint64, as a negative int64 does.
    return static_cast<std::uint64_t>(static_cast<std::int64_t>(static_cast<Id>(most)));
  });
}

/// Ids from the start, the middle and the end of a raw file, and from around one of its ids: read as `type`, and enough to tell types.
std::vector<std::int64_t> TokenFile::probes(TokenType type, std::int64_t around) const {
  const std::size_t width = token_width(type);
  const std::size_t all = file_.bytes().size() / width;
  const std::size_t count = std::min<std::size_t>(kProbe, all) / 2 * 2;
  const std::size_t here = std::min(all, static_cast<std::size_t>(std::max<std::int64_t>(0, around)) * token_width(layout_.type) / width);
  std::vector<std::int64_t> ids;
  for (const std::size_t at : {std::size_t{0}, all / 2, all, here}) {
    const std::size_t from = std::min(at, all - count) / 2 * 2;  // even: halves stay in their places
    const std::size_t before = ids.size();
    ids.resize(before + count);
    widen(file_.bytes().data() + from * width, type, std::span(ids).subspan(before));
  }
  return ids;
}

void TokenFile::check_width() const {
  const std::vector<std::int64_t> ids = layout_.tokens < 16 ? std::vector<std::int64_t>() : probes(layout_.type, 0);
  if (!are_halves(ids, layout_.type)) {
    return;
  }
  const bool zeros = std::none_of(ids.begin(), ids.end(), [&, i = 0](std::int64_t id) mutable { return i++ % 2 == 1 && id != 0; });
  const TokenType wider = wider_than(layout_.type);
  fail(Code::data, "{}: read as {}, every second id is {}, as in a file of {}; set data.token_dtype = \"{}\"", path(),
       token_type_name(layout_.type), zeros ? "0" : "next to 0", token_type_name(wider), token_type_name(wider));
}

void TokenFile::refuse(std::int64_t position, std::int64_t id) const {
  fail(Code::data, "{}: token {} (from 0) is id {}, but ids go from 0 to {} (model.vocab_size = {}){}", path(), position, id,
       vocab_size_ - 1, vocab_size_, other_type_hint(position));
}

/// Of raw files: the type as which the file would be valid, tried at its start, middle and end and around the wrong id. Any file is valid
/// as uint16 where the vocabulary is large, so it must not look like halves, either.
std::string TokenFile::other_type_hint(std::int64_t position) const {
  if (!layout_.raw) {
    return "; the file was made for a larger vocabulary";
  }
  for (const TokenType type : kTypes) {
    const std::size_t width = token_width(type);
    if (width == token_width(layout_.type) || file_.bytes().size() % width != 0) {
      continue;
    }
    const std::vector<std::int64_t> ids = probes(type, position);
    if (all_below(ids, vocab_size_) && !are_halves(ids, type)) {
      return format("; read as {}, the file looks like {}: set data.token_dtype = \"{}\"", token_type_name(layout_.type),
                    token_type_name(type), token_type_name(type));
    }
  }
  return format(
      "; read as {}, and as no other type would its ids be valid: was the file made for a larger vocabulary, or does another "
      "program's header stand before the ids?",
      token_type_name(layout_.type));
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
