#pragma once
// The hash that names caches and finds damage: XXH3, 128 bits. Fast enough (memory speed) to read every source before it is trusted; not
// meant against forgery.

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>

namespace kf::cache {

class ContentHash {
 public:
  ContentHash();
  ~ContentHash();
  ContentHash(const ContentHash&) = delete;
  ContentHash& operator=(const ContentHash&) = delete;

  void add(const void* data, std::size_t size);
  void add(std::string_view text) { add(text.data(), text.size()); }
  /// 32 hexadecimal digits, as `xxhsum -H2` prints them.
  std::string hex() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

std::string hash_of(std::string_view content);

}  // namespace kf::cache
