#pragma once
// Bytes of a file, read one number after the other; little-endian, as everything here is.

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string_view>

#include "checkpoint/pickle/unpickle.h"
#include "core/error.h"

namespace kf::pickle {

static_assert(std::endian::native == std::endian::little, "pickles and zip archives are little-endian");

class Cursor {
 public:
  Cursor(std::span<const std::byte> bytes, const Place& place) : bytes_(bytes), place_(place) {}

  std::uint64_t position() const { return position_; }
  std::uint64_t left() const { return bytes_.size() - position_; }

  /// The next `count` bytes; an error where there are fewer.
  std::string_view take(std::uint64_t count) {
    KF_CHECK(count <= left(), Code::checkpoint, "{}: {} bytes should follow byte {}, but only {} do: the file is cut short or damaged",
             place_.file, count, place_.offset + position_, left());
    const char* const begin = reinterpret_cast<const char*>(bytes_.data()) + position_;
    position_ += count;
    return {begin, static_cast<std::size_t>(count)};
  }

  template <class Number>
  Number number() {
    Number out;
    std::memcpy(&out, take(sizeof out).data(), sizeof out);
    return out;
  }

  /// Text up to the next line feed, without it.
  std::string_view line() {
    const std::string_view rest(reinterpret_cast<const char*>(bytes_.data()) + position_, left());
    const std::size_t end = rest.find('\n');
    KF_CHECK(end != std::string_view::npos, Code::checkpoint, "{}: the line at byte {} does not end", place_.file,
             place_.offset + position_);
    return take(end + 1).substr(0, end);
  }

 private:
  std::span<const std::byte> bytes_;
  const Place& place_;
  std::uint64_t position_ = 0;
};

}  // namespace kf::pickle
