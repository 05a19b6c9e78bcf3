#include "data/file/megatron.h"

#include <cstring>
#include <limits>
#include <string_view>

#include "core/error.h"
#include "core/text.h"
#include "data/file/input_file.h"

namespace kf {
namespace {

constexpr std::string_view kMark{"MMIDIDX\0\0", 9};

/// Little-endian values one after the other.
class Cursor {
 public:
  Cursor(std::span<const std::byte> bytes, const fs::path& path) : bytes_(bytes), path_(path) {}

  template <class T>
  T take(const char* what) {
    need(1, sizeof(T), what);
    T value;
    std::memcpy(&value, bytes_.data() + at_, sizeof(T));
    at_ += sizeof(T);
    return value;
  }

  /// The place of `count` values, which are there.
  template <class T>
  std::span<const std::byte> list(std::uint64_t count, const char* what) {
    need(count, sizeof(T), what);
    const auto out = bytes_.subspan(at_, static_cast<std::size_t>(count) * sizeof(T));
    at_ += out.size();
    return out;
  }

 private:
  void need(std::uint64_t count, std::size_t width, const char* what) const {
    // Divided, not multiplied: a hostile count must not wrap.
    KF_CHECK(count <= (bytes_.size() - at_) / width, Code::data, "{}: cut off: {} ({} of {} bytes) begin at byte {} of {}", path_, what,
             count, width, at_, bytes_.size());
  }

  std::span<const std::byte> bytes_;
  const fs::path& path_;
  std::size_t at_ = 0;
};

template <class T>
T at(std::span<const std::byte> list, std::uint64_t index) {
  T value;
  std::memcpy(&value, list.data() + index * sizeof(T), sizeof(T));
  return value;
}

TokenType type_of(unsigned code, const fs::path& path) {
  switch (code) {
    case 4: return TokenType::int32;
    case 5: return TokenType::int64;
    case 8: return TokenType::uint16;
    default: break;
  }
  fail(Code::data, "{}: ids of type code {}; read are 8 (uint16), 4 (int32) and 5 (int64)", path, code);
}

/// Where each sequence begins, in ids. They must follow each other without gaps.
std::vector<std::int64_t> starts_of(std::span<const std::byte> sizes, std::span<const std::byte> pointers, std::uint64_t count,
                                    std::size_t width, const fs::path& path) {
  std::vector<std::int64_t> starts;
  starts.reserve(count + 1);
  starts.push_back(0);
  for (std::uint64_t i = 0; i < count; ++i) {
    const auto size = at<std::int32_t>(sizes, i);
    const auto pointer = at<std::int64_t>(pointers, i);
    KF_CHECK(size >= 0, Code::data, "{}: sequence {} has {} ids", path, i, size);
    KF_CHECK(pointer == starts.back() * static_cast<std::int64_t>(width), Code::data,
             "{}: sequence {} begins at byte {}, the ones before it end at {}; only data sets without gaps can be read", path, i, pointer,
             starts.back() * static_cast<std::int64_t>(width));
    starts.push_back(starts.back() + size);
  }
  return starts;
}

}  // namespace

MegatronIndex parse_megatron_index(std::span<const std::byte> bytes, const fs::path& path) {
  KF_CHECK(bytes.size() >= kMark.size() && std::memcmp(bytes.data(), kMark.data(), kMark.size()) == 0, Code::data,
           "{} does not start with the mark of a Megatron index (MMIDIDX)", path);
  Cursor cursor(bytes.subspan(kMark.size()), path);
  const auto version = cursor.take<std::uint64_t>("the version");
  KF_CHECK(version == 1, Code::data, "{}: version {} of the Megatron index; 1 can be read", path, version);
  MegatronIndex out;
  out.type = type_of(cursor.take<std::uint8_t>("the type"), path);
  const auto sequences = cursor.take<std::uint64_t>("the number of sequences");
  const auto documents = cursor.take<std::uint64_t>("the number of documents");
  const auto sizes = cursor.list<std::int32_t>(sequences, "sizes");
  const auto pointers = cursor.list<std::int64_t>(sequences, "pointers");
  const auto indices = cursor.list<std::int64_t>(documents, "document indices");
  const std::vector<std::int64_t> starts = starts_of(sizes, pointers, sequences, token_width(out.type), path);
  out.tokens = starts.back();
  KF_CHECK(documents > 0, Code::data, "{} names no document", path);
  for (std::uint64_t i = 0; i < documents; ++i) {
    const auto sequence = at<std::int64_t>(indices, i);
    const std::int64_t least = i == 0 ? 0 : at<std::int64_t>(indices, i - 1);
    KF_CHECK(sequence >= least && static_cast<std::uint64_t>(sequence) <= sequences && (i > 0 || sequence == 0), Code::data,
             "{}: document {} begins at sequence {}; they rise from 0 to {}", path, i, sequence, sequences);
    out.document_starts.push_back(starts[static_cast<std::size_t>(sequence)]);
  }
  KF_CHECK(at<std::int64_t>(indices, documents - 1) == static_cast<std::int64_t>(sequences), Code::data,
           "{}: the documents end at sequence {} of {}", path, at<std::int64_t>(indices, documents - 1), sequences);
  return out;
}

namespace {

fs::path index_of(const fs::path& bin) {
  fs::path path = bin;
  return path.replace_extension(".idx");
}

}  // namespace

bool has_megatron_index(const fs::path& bin) {
  const fs::path path = index_of(bin);
  std::error_code error;
  if (lower(bin.extension().string()) != ".bin" || !fs::is_regular_file(path, error)) {
    return false;
  }
  std::string mark(kMark.size(), '\0');
  const InputFile file(path);
  KF_CHECK(file.read_at(0, mark.data(), mark.size()) == mark.size(), Code::data,
           "{} is cut off: it has no whole head of a Megatron index; bring it whole, or take it away to read {} as bare ids", path,
           bin.filename());
  KF_CHECK(!mark.starts_with("TNTIDX"), Code::data,
           "{} is an index of Megatron's older form (TNTIDX), which is not read; write the data again as MMIDIDX", path);
  return mark == kMark;  // else an .idx of something else
}

std::optional<MegatronIndex> find_megatron_index(const fs::path& bin) {
  if (!has_megatron_index(bin)) {
    return std::nullopt;
  }
  const fs::path path = index_of(bin);
  const InputFile file(path);
  std::vector<std::byte> bytes(static_cast<std::size_t>(file.size()));
  file.read_at(0, reinterpret_cast<char*>(bytes.data()), bytes.size());
  MegatronIndex index = parse_megatron_index(bytes, path);
  const std::int64_t wanted = index.tokens * static_cast<std::int64_t>(token_width(index.type));
  const InputFile data(bin);
  KF_CHECK(data.size() == wanted, Code::data, "{} has {} bytes, its index {} says {} ({} ids of {})", bin, data.size(), path.filename(),
           wanted, index.tokens, token_type_name(index.type));
  return index;
}

}  // namespace kf
