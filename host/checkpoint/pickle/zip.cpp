#include "checkpoint/pickle/zip.h"

#include <zlib.h>

#include <algorithm>
#include <optional>
#include <string_view>

#include "checkpoint/pickle/cursor.h"
#include "core/error.h"
#include "core/text.h"

namespace kf::pickle {
namespace {

constexpr std::uint32_t kEntryHeader = 0x04034b50;     // before each entry's bytes
constexpr std::uint32_t kDirectoryEntry = 0x02014b50;  // the directory has one for each
constexpr std::uint32_t kDirectoryEnd = 0x06054b50;    // says where the directory is
constexpr std::uint32_t kDirectoryEnd64 = 0x06064b50;  // the same in 64 bits
constexpr std::uint32_t kLocator64 = 0x07064b50;       // says where that is
constexpr std::uint64_t kEndSize = 22, kEnd64Size = 56, kLocatorSize = 20, kHeaderSize = 30;
constexpr std::uint32_t kIn64 = 0xffffffff;  // the number stands in its 64-bit form elsewhere

struct Directory {
  std::uint64_t begin = 0, size = 0, entries = 0;
};

class Reader {
 public:
  Reader(std::span<const std::byte> archive, const Place& place) : archive_(archive), place_(place) {}

  std::map<std::string, ZipEntry> entries() const {
    const std::uint64_t end = find_end();
    Directory directory = directory_at(end);
    if (const std::optional<Directory> wide = directory_64(end)) {
      directory = *wide;
    }
    check(directory.begin <= end && directory.size <= end - directory.begin, "its directory lies outside of it");
    check(directory.entries <= directory.size / 46, "its directory is too short for its {} entries", directory.entries);
    Cursor in = cursor(directory.begin, directory.size);
    std::map<std::string, ZipEntry> out;
    for (std::uint64_t i = 0; i < directory.entries; ++i) {
      read_entry(in, directory.begin, out);
    }
    return out;
  }

 private:
  template <class... Args>
  void check(bool holds, std::string_view pattern, const Args&... args) const {
    if (!holds) [[unlikely]] {
      fail(Code::checkpoint, "{}: is no zip archive as torch.save writes it: {}", place_.file, format(pattern, args...));
    }
  }

  Cursor cursor(std::uint64_t begin, std::uint64_t size) const { return {archive_.subspan(begin, size), place_}; }

  /// Where the last record begins: behind it there may be a comment.
  std::uint64_t find_end() const {
    check(archive_.size() >= kEndSize, "{} bytes are too few", archive_.size());
    const std::uint64_t last = archive_.size() - kEndSize;
    for (std::uint64_t at = last + 1; at-- > (last > 0xffff ? last - 0xffff : 0);) {
      Cursor in = cursor(at, kEndSize);
      if (in.number<std::uint32_t>() == kDirectoryEnd) {
        in.take(16);
        if (in.number<std::uint16_t>() == last - at) {
          return at;
        }
      }
    }
    check(false, "its end is missing; is the file cut short?");
    return 0;
  }

  Directory directory_at(std::uint64_t end) const {
    Cursor in = cursor(end + 4, kEndSize - 4);
    const auto disk = in.number<std::uint16_t>();
    const auto first = in.number<std::uint16_t>();
    check((disk == 0 || disk == 0xffff) && (first == 0 || first == 0xffff), "it is one of several files");
    in.take(2);
    Directory out;
    out.entries = in.number<std::uint16_t>();
    out.size = in.number<std::uint32_t>();
    out.begin = in.number<std::uint32_t>();
    return out;
  }

  std::optional<Directory> directory_64(std::uint64_t end) const {
    if (end < kLocatorSize) {
      return std::nullopt;
    }
    Cursor locator = cursor(end - kLocatorSize, kLocatorSize);
    if (locator.number<std::uint32_t>() != kLocator64) {
      return std::nullopt;
    }
    locator.take(4);
    const auto at = locator.number<std::uint64_t>();
    check(at <= end && end - at >= kEnd64Size, "its 64-bit directory lies outside of it");
    Cursor in = cursor(at, kEnd64Size);
    check(in.number<std::uint32_t>() == kDirectoryEnd64, "its 64-bit directory is missing");
    in.take(8 + 2 + 2 + 4 + 4 + 8);
    Directory out;
    out.entries = in.number<std::uint64_t>();
    out.size = in.number<std::uint64_t>();
    out.begin = in.number<std::uint64_t>();
    return out;
  }

  void read_entry(Cursor& in, std::uint64_t directory, std::map<std::string, ZipEntry>& out) const {
    check(in.number<std::uint32_t>() == kDirectoryEntry, "its directory is damaged");
    in.take(4);
    const auto flags = in.number<std::uint16_t>();
    const auto method = in.number<std::uint16_t>();
    in.take(4);
    ZipEntry entry;
    entry.crc = in.number<std::uint32_t>();
    std::uint64_t packed = in.number<std::uint32_t>();
    entry.size = in.number<std::uint32_t>();
    const auto name_size = in.number<std::uint16_t>();
    const auto extra_size = in.number<std::uint16_t>();
    const auto comment_size = in.number<std::uint16_t>();
    in.take(8);
    std::uint64_t header = in.number<std::uint32_t>();
    const std::string name(in.take(name_size));
    wide_numbers(in.take(extra_size), {&entry.size, &packed, &header}, name);
    in.take(comment_size);
    check((flags & 1) == 0, "the entry '{}' is encrypted", name);
    entry.compressed = method != 0 || packed != entry.size;
    entry.begin = begin_of(header, directory, name);
    check(packed <= directory - entry.begin && (entry.compressed || entry.size <= directory - entry.begin),
          "the entry '{}' lies outside of it", name);
    check(out.emplace(name, entry).second, "two entries are named '{}'", name);
  }

  /// Numbers that did not fit into 32 bits stand in an extra field, in this order.
  void wide_numbers(std::string_view extra, std::initializer_list<std::uint64_t*> numbers, const std::string& name) const {
    if (std::none_of(numbers.begin(), numbers.end(), [](const std::uint64_t* number) { return *number == kIn64; })) {
      return;
    }
    Cursor in({reinterpret_cast<const std::byte*>(extra.data()), extra.size()}, place_);
    while (in.left() >= 4) {
      const auto kind = in.number<std::uint16_t>();
      const std::string_view field = in.take(in.number<std::uint16_t>());
      if (kind != 1) {
        continue;
      }
      Cursor values({reinterpret_cast<const std::byte*>(field.data()), field.size()}, place_);
      for (std::uint64_t* number : numbers) {
        *number = *number == kIn64 ? values.number<std::uint64_t>() : *number;
      }
      return;
    }
    check(false, "the entry '{}' has no 64-bit sizes", name);
  }

  /// Where the bytes of an entry begin, behind its own header.
  std::uint64_t begin_of(std::uint64_t header, std::uint64_t directory, const std::string& name) const {
    check(header <= directory && directory - header >= kHeaderSize, "the entry '{}' lies outside of it", name);
    Cursor in = cursor(header, directory - header);
    check(in.number<std::uint32_t>() == kEntryHeader, "the entry '{}' is missing", name);
    in.take(22);
    const auto name_size = in.number<std::uint16_t>();
    const auto extra_size = in.number<std::uint16_t>();
    check(in.take(name_size) == name, "the entry '{}' has another name in its directory", name);
    in.take(extra_size);
    return header + in.position();
  }

  std::span<const std::byte> archive_;
  const Place& place_;
};

}  // namespace

bool is_zip(std::span<const std::byte> bytes) { return bytes.size() >= 4 && Cursor(bytes, {}).number<std::uint32_t>() == kEntryHeader; }

std::map<std::string, ZipEntry> zip_entries(std::span<const std::byte> archive, const Place& place) {
  return Reader(archive, place).entries();
}

void check_stored(const ZipEntry& entry, const std::string& name, const Place& place) {
  KF_CHECK(!entry.compressed, Code::checkpoint,
           "{}: the entry '{}' of the archive is compressed, which torch.save never does; unpack it and pack it again without compression",
           place.file, name);
}

void check_crc(std::span<const std::byte> bytes, const ZipEntry& entry, const std::string& name, const Place& place) {
  if (entry.crc == 0) {
    return;
  }
  const uLong crc = ::crc32_z(0, reinterpret_cast<const Bytef*>(bytes.data()), bytes.size());
  KF_CHECK(crc == entry.crc, Code::checkpoint, "{}: the bytes of '{}' are not those that were written: their CRC-32 differs", place.file,
           name);
}

}  // namespace kf::pickle
