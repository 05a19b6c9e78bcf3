#include "data/tokenizer/byte_bpe.h"

#include <cstring>

#include "core/error.h"
#include "data/tokenizer/hash.h"

namespace kf {
namespace {

/// Pieces longer than this are merged anew each time: they do not come twice.
constexpr std::size_t kLongest = 128;
/// In the last byte of a key, above the size: how many ids there are.
constexpr int kCountShift = 60;

/// The first `size` <= 8 bytes at p as a number.
std::uint64_t load(const char* p, std::size_t size) {
  std::uint64_t word = 0;
  std::memcpy(&word, p, size);
  return word;
}

std::uint64_t keep(std::uint64_t word, std::size_t bytes) { return bytes >= 8 ? word : word & ((std::uint64_t{1} << (8 * bytes)) - 1); }

}  // namespace

PieceCache::PieceCache() : entries_(std::size_t{1} << kBits), long_(std::size_t{1} << kLongBits) {}

PieceCache::Long& PieceCache::long_entry(std::string_view piece) { return long_[quick_hash(piece) >> (64 - kLongBits)]; }

ByteBpe::ByteBpe(Vocabulary tokens, Merges merges, std::array<std::uint32_t, 256> byte_ids, bool whole_first)
    : tokens_(std::move(tokens)), merges_(std::move(merges)), byte_ids_(byte_ids), whole_first_(whole_first) {}

ByteBpe ByteBpe::from_ranks(Vocabulary tokens) {
  std::array<std::uint32_t, 256> byte_ids{};
  for (std::size_t byte = 0; byte < 256; ++byte) {
    const char text = static_cast<char>(byte);
    const std::optional<std::uint32_t> id = tokens.find({&text, 1});
    KF_CHECK(id, Code::data, "the byte {} is no token; all 256 bytes must be", byte);
    byte_ids[byte] = *id;
  }
  Merges merges;
  for (std::uint32_t id = 0; id < tokens.end(); ++id) {
    const std::optional<std::string_view> token = tokens.token(id);
    for (std::size_t cut = 1; token && cut < token->size(); ++cut) {
      const auto left = tokens.find(token->substr(0, cut));
      const auto right = left ? tokens.find(token->substr(cut)) : std::nullopt;
      if (right) {
        merges.add(*left, *right, id, id);
      }
    }
  }
  return {std::move(tokens), std::move(merges), byte_ids, true};
}

void ByteBpe::encode_bounded(std::string_view piece, const char* readable, std::vector<std::uint32_t>& out, Scratch& scratch) const {
  const std::size_t size = piece.size();
  if (size > PieceCache::kKeyBytes) {
    encode_long(piece, out, scratch);
    return;
  }
  std::uint64_t low = 0;
  std::uint64_t high = 0;
  if (readable - piece.data() >= 16) [[likely]] {
    low = keep(load(piece.data(), 8), size);
    high = size > 8 ? keep(load(piece.data() + 8, 8), size - 8) : 0;
  } else {
    low = load(piece.data(), std::min<std::size_t>(size, 8));
    high = size > 8 ? load(piece.data() + 8, size - 8) : 0;
  }
  high |= std::uint64_t{size} << 56;
  PieceCache::Entry& entry = scratch.cache.entry(low, high);
  const std::uint64_t count = (entry.high >> kCountShift) & 7;
  constexpr std::uint64_t without_count = ~(std::uint64_t{0xf} << kCountShift);
  if (entry.low == low && (entry.high & without_count) == high && count > 0) [[likely]] {
    const std::size_t before = out.size();
    if (count == 1) [[likely]] {
      out.push_back(entry.ids[0]);
      return;
    }
    out.resize(before + count);
    for (std::uint64_t i = 0; i < count; ++i) {
      out[before + i] = entry.ids[i];
    }
    return;
  }
  encode_short(piece, entry, low, high, out, scratch);
}

void ByteBpe::encode_short(std::string_view piece, PieceCache::Entry& entry, std::uint64_t low, std::uint64_t high,
                           std::vector<std::uint32_t>& out, Scratch& scratch) const {
  merge(piece, scratch);
  out.insert(out.end(), scratch.ids.begin(), scratch.ids.end());
  const std::size_t count = scratch.ids.size();
  if (count > 0 && count <= PieceCache::kMaxIds) {
    entry.low = low;
    entry.high = high | std::uint64_t{count} << kCountShift;
    std::copy(scratch.ids.begin(), scratch.ids.end(), entry.ids);
  }
}

void ByteBpe::encode_long(std::string_view piece, std::vector<std::uint32_t>& out, Scratch& scratch) const {
  if (piece.size() > kLongest) {
    merge(piece, scratch);
    out.insert(out.end(), scratch.ids.begin(), scratch.ids.end());
    return;
  }
  PieceCache::Long& entry = scratch.cache.long_entry(piece);
  if (entry.piece != piece) {
    merge(piece, scratch);
    entry.piece = piece;
    entry.ids = scratch.ids;
  }
  out.insert(out.end(), entry.ids.begin(), entry.ids.end());
}

void ByteBpe::merge(std::string_view piece, Scratch& scratch) const {
  scratch.ids.clear();
  if (whole_first_) {
    if (const std::optional<std::uint32_t> id = tokens_.find(piece)) {
      scratch.ids.push_back(*id);
      return;
    }
  }
  for (const char c : piece) {
    const std::uint32_t id = byte_ids_[static_cast<unsigned char>(c)];
    if (id != kNoId) {
      scratch.ids.push_back(id);
    }
  }
  merges_.apply(scratch.ids, scratch.merges);
}

void ByteBpe::encode_all(std::string_view text, scan::Pattern pattern, std::vector<std::uint32_t>& out, Scratch& scratch) const {
  const char* end = text.data() + text.size();
  const scan::Reader reader(end);
  scan::with_scanner(pattern, [&](auto scanner) {
    for (const char* p = text.data(); p < end;) {
      const char* stop = decltype(scanner)::next(p, reader);
      encode_bounded({p, static_cast<std::size_t>(stop - p)}, end, out, scratch);
      p = stop;
    }
  });
}

}  // namespace kf
