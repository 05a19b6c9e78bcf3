#pragma once
// The 256 characters by which byte-level vocabularies spell bytes: printable ones stand for themselves, the others for U+0100 on (GPT-2).

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace kf::byte_letters {

/// The character of a byte.
std::uint32_t letter(unsigned char byte);
/// The byte of a character; none where it is not one of the 256.
std::optional<unsigned char> byte(std::uint32_t cp);

/// Each byte as its character.
std::string spell(std::string_view bytes);
/// The bytes that `letters` spell; none where one of the characters is not of the 256.
std::optional<std::string> read(std::string_view letters);

}  // namespace kf::byte_letters
