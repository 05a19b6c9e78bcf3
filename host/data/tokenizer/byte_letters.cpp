#include "data/tokenizer/byte_letters.h"

#include <array>

#include "data/tokenizer/unicode.h"

namespace kf::byte_letters {
namespace {

constexpr bool stands_for_itself(unsigned byte) { return (byte >= '!' && byte <= '~') || (byte >= 0xa1 && byte <= 0xac) || byte >= 0xae; }

struct Tables {
  std::array<std::uint32_t, 256> letters{};
  std::array<int, 324> bytes{};  // -1: none

  Tables() {
    bytes.fill(-1);
    std::uint32_t next = 256;
    for (unsigned byte = 0; byte < 256; ++byte) {
      letters[byte] = stands_for_itself(byte) ? byte : next++;
      bytes[letters[byte]] = static_cast<int>(byte);
    }
  }
};

const Tables& tables() {
  static const Tables all;
  return all;
}

}  // namespace

std::uint32_t letter(unsigned char byte) { return tables().letters[byte]; }

std::optional<unsigned char> byte(std::uint32_t cp) {
  if (cp >= tables().bytes.size() || tables().bytes[cp] < 0) {
    return std::nullopt;
  }
  return static_cast<unsigned char>(tables().bytes[cp]);
}

std::string spell(std::string_view bytes) {
  std::string out;
  for (const char c : bytes) {
    unicode::append(out, letter(static_cast<unsigned char>(c)));
  }
  return out;
}

std::optional<std::string> read(std::string_view letters) {
  std::string out;
  const char* end = letters.data() + letters.size();
  for (const char* p = letters.data(); p < end;) {
    const unicode::Decoded c = unicode::decode(p, end);
    const std::optional<unsigned char> value = byte(c.cp);
    if (!value) {
      return std::nullopt;
    }
    out += static_cast<char>(*value);
    p += c.size;
  }
  return out;
}

}  // namespace kf::byte_letters
