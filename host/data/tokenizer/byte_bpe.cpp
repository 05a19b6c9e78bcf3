#include "data/tokenizer/byte_bpe.h"

#include <sys/mman.h>

#include <cstring>
#include <new>

#include "core/error.h"
#include "data/tokenizer/hash.h"

namespace kf {
namespace {

/// Pieces longer than this are merged anew each time: they do not come twice.
constexpr std::size_t kLongest = 128;
constexpr int kSizeShift = 56;
constexpr int kCountShift = 60;
constexpr std::uint64_t kWithoutCount = ~(std::uint64_t{0xf} << kCountShift);
/// Ids gathered before they go to the vector.
constexpr std::size_t kGathered = 512;
/// Pieces whose places in the cache are fetched before the first of them is looked up.
constexpr std::size_t kAhead = 16;

/// The first `size` <= 8 bytes at p as a number.
std::uint64_t load(const char* p, std::size_t size) {
  std::uint64_t word = 0;
  std::memcpy(&word, p, size);
  return word;
}

std::uint64_t keep(std::uint64_t word, std::size_t bytes) { return bytes >= 8 ? word : word & ((std::uint64_t{1} << (8 * bytes)) - 1); }

struct Key {
  std::uint64_t low;
  std::uint64_t high;
};

/// Of a piece of at most 15 bytes. Memory up to `readable` may be read.
Key key_of(const char* p, std::size_t size, const char* readable) {
  const std::uint64_t tag = std::uint64_t{size} << kSizeShift;
  if (readable - p >= 16) [[likely]] {
    return {keep(load(p, 8), size), (size > 8 ? keep(load(p + 8, 8), size - 8) : 0) | tag};
  }
  return {load(p, std::min<std::size_t>(size, 8)), (size > 8 ? load(p + 8, size - 8) : 0) | tag};
}

const PieceCache::Entry* find(const PieceCache::Set& set, const Key& key) {
  for (const PieceCache::Entry& entry : set.entries) {
    if (entry.low == key.low && (entry.high & kWithoutCount) == key.high) {
      return &entry;
    }
  }
  return nullptr;
}

struct Pending {
  std::string_view text;
  Key key;
  const PieceCache::Set* set;  // null: too long for it
};

std::size_t count_of(const PieceCache::Entry& entry) { return entry.high >> kCountShift; }

}  // namespace

PieceCache::PieceCache() : long_(std::size_t{1} << kLongBits) {
  // In pages of 2 MB where the system has them: every look goes to another place.
  constexpr std::size_t kBytes = sizeof(Set) << kBits;
  constexpr std::size_t kPage = std::size_t{1} << 21;
  static_assert(kBytes % kPage == 0);
  void* memory = std::aligned_alloc(kPage, kBytes);
  if (memory == nullptr) {
    throw std::bad_alloc();
  }
  madvise(memory, kBytes, MADV_HUGEPAGE);
  std::memset(memory, 0, kBytes);
  sets_.reset(static_cast<Set*>(memory));
}

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

void ByteBpe::encode(std::string_view piece, std::vector<std::uint32_t>& out, Scratch& scratch) const {
  if (piece.empty() || piece.size() > PieceCache::kKeyBytes) {
    encode_slow(piece, 0, 0, out, scratch);
    return;
  }
  const Key key = key_of(piece.data(), piece.size(), piece.data() + piece.size());
  if (const PieceCache::Entry* entry = find(scratch.cache.set(key.low, key.high), key)) {
    out.insert(out.end(), entry->ids, entry->ids + count_of(*entry));
  } else {
    encode_slow(piece, key.low, key.high, out, scratch);
  }
}

void ByteBpe::encode_slow(std::string_view piece, std::uint64_t low, std::uint64_t high, std::vector<std::uint32_t>& out,
                          Scratch& scratch) const {
  if (piece.size() > kLongest) {
    merge(piece, scratch);
    out.insert(out.end(), scratch.ids.begin(), scratch.ids.end());
    return;
  }
  PieceCache::Long& entry = scratch.cache.long_entry(piece);
  if (entry.piece != piece) {
    merge(piece, scratch);
    const std::size_t count = scratch.ids.size();
    if (high != 0 && count > 0 && count <= PieceCache::kMaxIds) {
      PieceCache::Set& set = scratch.cache.set(low, high);
      set.entries[1] = set.entries[0];
      set.entries[0].low = low;
      set.entries[0].high = high | std::uint64_t{count} << kCountShift;
      std::copy(scratch.ids.begin(), scratch.ids.end(), set.entries[0].ids);
      out.insert(out.end(), scratch.ids.begin(), scratch.ids.end());
      return;
    }
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
  std::uint32_t gathered[kGathered + kAhead * PieceCache::kMaxIds];
  std::size_t count = 0;
  const auto flush = [&] {
    out.insert(out.end(), gathered, gathered + count);
    count = 0;
  };
  scan::with_scanner(pattern, [&](auto scanner) {
    for (const char* p = text.data(); p < end;) {
      // First the borders and the places in the cache, then the ids: what is not near in memory is on its way meanwhile.
      Pending pieces[kAhead];
      std::size_t found = 0;
      for (; found < kAhead && p < end; ++found) {
        const char* stop = decltype(scanner)::next(p, reader);
        Pending& piece = pieces[found];
        piece.text = {p, static_cast<std::size_t>(stop - p)};
        if (piece.text.size() <= PieceCache::kKeyBytes) [[likely]] {
          piece.key = key_of(p, piece.text.size(), end);
          piece.set = &scratch.cache.set(piece.key.low, piece.key.high);
          __builtin_prefetch(piece.set);
        } else {
          piece.key = {0, 0};
          piece.set = nullptr;
        }
        p = stop;
      }
      for (std::size_t i = 0; i < found; ++i) {
        const Pending& piece = pieces[i];
        const PieceCache::Entry* entry = piece.set != nullptr ? find(*piece.set, piece.key) : nullptr;
        if (entry != nullptr) [[likely]] {
          std::memcpy(gathered + count, entry->ids, sizeof entry->ids);  // all four: those too many are written over
          count += count_of(*entry);
        } else {
          flush();
          encode_slow(piece.text, piece.key.low, piece.key.high, out, scratch);
        }
      }
      if (count >= kGathered) {
        flush();
      }
    }
  });
  flush();
}

}  // namespace kf
