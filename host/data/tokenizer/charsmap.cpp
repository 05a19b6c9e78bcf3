#include "data/tokenizer/charsmap.h"

#include "core/error.h"

namespace kf {
namespace {

std::uint32_t little_endian(const char* p) {
  std::uint32_t value = 0;
  for (int i = 3; i >= 0; --i) {
    value = value << 8 | static_cast<unsigned char>(p[i]);
  }
  return value;
}

// A unit of the double array: see darts-clone's DoubleArrayUnit.
bool has_leaf(std::uint32_t unit) { return (unit >> 8 & 1) != 0; }
std::uint32_t value_of(std::uint32_t unit) { return unit & 0x7fffffffU; }
std::uint32_t label_of(std::uint32_t unit) { return unit & 0x800000ffU; }
std::uint32_t offset_of(std::uint32_t unit) { return unit >> 10 << ((unit & 0x200U) >> 6); }

}  // namespace

Charsmap::Charsmap(std::string_view blob, const std::string& where) {
  if (blob.empty()) {
    return;
  }
  KF_CHECK(blob.size() > 4, Code::data, "{}: a character map of {} bytes is cut off", where, blob.size());
  const std::size_t size = little_endian(blob.data());
  KF_CHECK(size % 4 == 0 && size > 0 && size < blob.size() - 4, Code::data, "{}: a character map of {} bytes cannot hold a trie of {}",
           where, blob.size(), size);
  units_.resize(size / 4);
  for (std::size_t i = 0; i < units_.size(); ++i) {
    units_[i] = little_endian(blob.data() + 4 + 4 * i);
  }
  normal_ = blob.substr(4 + size);
}

Charsmap::Match Charsmap::match(std::string_view text, bool longest) const {
  Match best;
  if (units_.empty()) {
    return best;
  }
  std::size_t at = offset_of(units_[0]);
  for (std::size_t i = 0; i < text.size(); ++i) {
    const std::uint32_t byte = static_cast<unsigned char>(text[i]);
    at ^= byte;
    if (at >= units_.size() || label_of(units_[at]) != byte) {
      break;
    }
    const std::uint32_t unit = units_[at];
    at ^= offset_of(unit);
    if (has_leaf(unit) && at < units_.size()) {
      const std::size_t value = value_of(units_[at]);
      const std::string_view normal = value < normal_.size() ? std::string_view(normal_).substr(value) : std::string_view();
      best = {i + 1, normal.substr(0, normal.find('\0'))};
      if (!longest) {
        break;
      }
    }
  }
  return best;
}

std::string decode_base64(std::string_view text, const std::string& where) {
  constexpr std::string_view alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  KF_CHECK(text.size() % 4 == 0, Code::data, "{}: base64 of {} characters, which is not a multiple of 4", where, text.size());
  std::string out;
  out.reserve(text.size() / 4 * 3);
  while (!text.empty() && text.back() == '=') {
    text.remove_suffix(1);
  }
  std::uint32_t bits = 0;
  int have = 0;
  for (const char c : text) {
    const std::size_t value = alphabet.find(c);
    KF_CHECK(value != std::string_view::npos, Code::data, "{}: {} is no base64", where, kf::quoted(std::string_view(&c, 1)));
    bits = (bits << 6 | static_cast<std::uint32_t>(value)) & 0xffffffU;
    have += 6;
    if (have >= 8) {
      have -= 8;
      out += static_cast<char>(bits >> have & 0xffU);
    }
  }
  return out;
}

}  // namespace kf
