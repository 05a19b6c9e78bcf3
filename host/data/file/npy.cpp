// The header of NumPy's `.npy` files (numpy.lib.format): magic, version, length, a Python dict literal.

#include <charconv>
#include <cstring>

#include "core/error.h"
#include "core/text.h"
#include "data/file/token_file.h"

namespace kf {
namespace {

constexpr std::string_view kMagic = "\x93NUMPY";

/// Reads the dict literal of a header. Only what NumPy writes: quoted keys; strings, True, False and tuples of integers as values.
class DictReader {
 public:
  DictReader(std::string_view text, const fs::path& path) : text_(text), path_(path) {}

  struct Fields {
    std::string descr;
    std::vector<std::int64_t> shape;
  };

  Fields read() {
    expect('{');
    while (!accept('}')) {
      const std::string key = quoted_string();
      expect(':');
      read_value(key);
      if (!accept(',')) {
        expect('}');
        break;
      }
    }
    skip_space();
    check(at_ == text_.size(), "nothing after the closing brace");
    check(seen_descr_ && seen_order_ && seen_shape_, "the keys 'descr', 'fortran_order' and 'shape'");
    return fields_;
  }

 private:
  void read_value(const std::string& key) {
    if (key == "descr") {
      skip_space();
      check(peek() != '[', "a plain type (structured types are no token ids)");
      fields_.descr = quoted_string();
      seen_descr_ = true;
    } else if (key == "fortran_order") {
      skip_space();
      const bool is_true = text_.substr(at_, 4) == "True";  // either order is the same for one dimension
      check(is_true || text_.substr(at_, 5) == "False", "True or False for 'fortran_order'");
      at_ += is_true ? 4 : 5;
      seen_order_ = true;
    } else if (key == "shape") {
      read_shape();
      seen_shape_ = true;
    } else {
      fail(Code::data, "{}: bad .npy header: unknown key {}", path_, kf::quoted(key));
    }
  }

  void read_shape() {
    expect('(');
    while (!accept(')')) {
      skip_space();
      std::int64_t value = 0;
      const auto [end, error] = std::from_chars(text_.data() + at_, text_.data() + text_.size(), value);
      check(error == std::errc() && value >= 0, "a whole number from 0 to 2^63 - 1 in 'shape'");
      at_ = static_cast<std::size_t>(end - text_.data());
      fields_.shape.push_back(value);
      if (!accept(',')) {
        expect(')');
        break;
      }
    }
  }

  std::string quoted_string() {
    skip_space();
    const char mark = peek();
    check(mark == '\'' || mark == '"', "a quoted string");
    const std::size_t end = text_.find(mark, at_ + 1);
    check(end != std::string_view::npos, "a closing quote");
    std::string out(text_.substr(at_ + 1, end - at_ - 1));
    at_ = end + 1;
    return out;
  }

  char peek() const { return at_ < text_.size() ? text_[at_] : '\0'; }
  void skip_space() {
    while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\n' || text_[at_] == '\t')) {
      ++at_;
    }
  }
  bool accept(char wanted) {
    skip_space();
    if (peek() != wanted) {
      return false;
    }
    ++at_;
    return true;
  }
  void expect(char wanted) { check(accept(wanted), "'" + std::string(1, wanted) + "'"); }
  void check(bool good, const std::string& wanted) const {
    KF_CHECK(good, Code::data, "{}: bad .npy header: expected {} at byte {} of {}", path_, wanted, at_, kf::quoted(text_.substr(0, 120)));
  }

  std::string_view text_;
  const fs::path& path_;
  std::size_t at_ = 0;
  Fields fields_;
  bool seen_descr_ = false;
  bool seen_order_ = false;
  bool seen_shape_ = false;
};

TokenType type_of(const std::string& descr, const fs::path& path) {
  const std::string allowed = "token files hold little-endian uint16 (<u2), uint32 (<u4), int32 (<i4) or int64 (<i8)";
  KF_CHECK(descr.empty() || descr[0] != '>', Code::data, "{}: type {} is big-endian; {}; convert it, as with x.astype('<u4')", path,
           kf::quoted(descr), allowed);
  if (descr == "<u2") {
    return TokenType::uint16;
  }
  if (descr == "<u4") {
    return TokenType::uint32;
  }
  if (descr == "<i4") {
    return TokenType::int32;
  }
  KF_CHECK(descr == "<i8", Code::data, "{}: type {}{} cannot be token ids; {}", path, kf::quoted(descr),
           descr.size() == 3 && descr[1] == 'f' ? " (floating point)" : "", allowed);
  return TokenType::int64;
}

std::uint32_t little_endian(std::span<const std::byte> bytes) {
  std::uint32_t value = 0;
  for (std::size_t i = bytes.size(); i-- > 0;) {
    value = value << 8 | std::to_integer<std::uint32_t>(bytes[i]);
  }
  return value;
}

}  // namespace

bool has_npy_mark(std::span<const std::byte> bytes) {
  return bytes.size() >= kMagic.size() && std::memcmp(bytes.data(), kMagic.data(), kMagic.size()) == 0;
}

TokenLayout npy_layout(std::span<const std::byte> bytes, const fs::path& path) {
  KF_CHECK(!bytes.empty(), Code::data, "{} is empty (0 bytes): an .npy file starts with a header", path);
  KF_CHECK(has_npy_mark(bytes), Code::data,
           "{} does not start with the .npy mark; if it holds nothing but ids, set data.token_dtype to their type", path);
  KF_CHECK(bytes.size() >= 10, Code::data, "{}: cut off inside the .npy header: {} bytes in all", path, bytes.size());
  const int version = std::to_integer<int>(bytes[6]);
  KF_CHECK(version >= 1 && version <= 3, Code::data, "{}: .npy version {}.{} is unknown; 1.0, 2.0 and 3.0 can be read", path, version,
           std::to_integer<int>(bytes[7]));
  const std::size_t length_width = version == 1 ? 2 : 4;
  const std::size_t start = 8 + length_width;
  KF_CHECK(bytes.size() >= start, Code::data, "{}: cut off inside the .npy header: {} bytes in all", path, bytes.size());
  const std::size_t length = little_endian(bytes.subspan(8, length_width));
  KF_CHECK(length <= bytes.size() - start, Code::data, "{}: cut off inside the .npy header: it should be {} bytes long, {} are there", path,
           length, bytes.size() - start);

  const auto* text = reinterpret_cast<const char*>(bytes.data()) + start;
  const auto fields = DictReader(std::string_view(text, length), path).read();
  TokenLayout layout;
  layout.type = type_of(fields.descr, path);
  layout.offset = start + length;
  KF_CHECK(fields.shape.size() == 1, Code::data, "{}: {} dimensions; token ids are a list of one dimension (x.reshape(-1))", path,
           fields.shape.size());
  layout.tokens = fields.shape[0];
  // Divided, not multiplied: a hostile shape must not wrap.
  const std::size_t there = bytes.size() - layout.offset;
  const std::size_t width = token_width(layout.type);
  KF_CHECK(there / width == static_cast<std::uint64_t>(layout.tokens) && there % width == 0, Code::data,
           "{}: the header says {} ids of {} bytes, but {} bytes follow it: the file is {}", path, layout.tokens, width, there,
           there / width < static_cast<std::uint64_t>(layout.tokens) ? "cut off" : "too long");
  return layout;
}

}  // namespace kf
