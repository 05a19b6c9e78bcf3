#pragma once
// SHA-256 (FIPS 180-4): names of cached content, checksums of downloads.

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace kf {

class Sha256 {
 public:
  Sha256& add(std::string_view bytes);
  /// 64 hexadecimal digits. Nothing may be added afterwards.
  std::string hex();

 private:
  void block(const unsigned char* data);

  std::array<std::uint32_t, 8> state_{0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a, 0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
  std::array<unsigned char, 64> pending_{};  // bytes of an unfinished block
  std::uint64_t size_ = 0;                   // bytes added so far
};

inline std::string sha256(std::string_view bytes) { return Sha256().add(bytes).hex(); }

}  // namespace kf
