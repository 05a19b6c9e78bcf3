#pragma once
// One-dimensional .npy files: written piece by piece, mapped to be read. The header is always 128 bytes, so that what follows is aligned.

#include <cstdint>
#include <cstring>
#include <string>

#include "core/fs.h"
#include "core/source_watch.h"
#include "data/cache/hash.h"

namespace kf::cache {

inline constexpr std::size_t kHeaderBytes = 128;

/// numpy's name of a type: "<u2", "<i8", "|u1".
std::size_t width_of(const std::string& descr);
/// The 128 bytes before `count` values of the type.
std::string npy_header(const std::string& descr, std::int64_t count);

/// A file of values as a manifest knows it.
struct ArrayInfo {
  std::string descr;
  std::int64_t count = 0;
  std::string hash;  // of the values, without the header
  friend bool operator==(const ArrayInfo&, const ArrayInfo&) = default;

  std::int64_t bytes() const { return static_cast<std::int64_t>(kHeaderBytes + width_of(descr) * static_cast<std::size_t>(count)); }
};

/// Buffered; nothing stays unless `finish` succeeds. Every failure throws Code::data with the system's reason and a remedy.
class ArrayWriter {
 public:
  ArrayWriter(fs::path path, std::string descr);
  ~ArrayWriter();
  ArrayWriter(const ArrayWriter&) = delete;
  ArrayWriter& operator=(const ArrayWriter&) = delete;

  void append(const void* values, std::size_t count);
  template <class T>
  void append(const T& value) {
    append(&value, 1);
  }
  std::int64_t count() const { return count_; }
  /// Durable afterwards.
  ArrayInfo finish();

 private:
  void flush();
  void put(const char* data, std::size_t size);
  [[noreturn]] void failed() const;

  fs::path path_;
  std::string descr_;
  std::size_t width_;
  int fd_ = -1;
  std::int64_t count_ = 0;
  std::string buffer_;
  ContentHash hash_;
};

/// The values of a file, mapped.
class MappedArray {
 public:
  /// Throws Code::data when the file is missing, or its size or header is not that of `info`.
  MappedArray(const fs::path& path, ArrayInfo info);

  const ArrayInfo& info() const { return info_; }
  const std::byte* values() const { return file_.bytes().data() + kHeaderBytes; }
  /// Value `index` of a type of this width, 0 <= index < count.
  template <class T>
  T at(std::int64_t index) const {
    T value;
    std::memcpy(&value, values() + static_cast<std::size_t>(index) * sizeof(T), sizeof(T));
    return value;
  }
  /// Whether the values still have their hash: reads all of them.
  bool intact() const;

 private:
  MappedFile file_;
  SourceWatch watch_;
  ArrayInfo info_;
};

}  // namespace kf::cache
