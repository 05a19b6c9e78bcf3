#pragma once
// A fast 64-bit hash that is the same on every machine and in every release: it decides which documents are held out.

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace kf {

/// Not cryptographic. Changing it would move documents between training and evaluation of runs that go on.
std::uint64_t hash64(std::string_view bytes, std::uint64_t seed = 0);

/// Names, sizes and samples of contents, folded in the order in which they are added.
class Digest {
 public:
  /// The name, the size, and the first and last 64 kB: copies of a file are equal whatever their times are.
  void add_file(std::string_view name, std::string_view content);
  void add(std::string_view text) { state_ = hash64(text, state_); }
  /// 16 hexadecimal digits.
  std::string hex() const;

 private:
  std::uint64_t state_ = 0;
};

}  // namespace kf
