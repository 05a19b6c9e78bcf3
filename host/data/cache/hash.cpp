#include "data/cache/hash.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

namespace kf::cache {

struct ContentHash::State {
  XXH3_state_t xxh;
};

ContentHash::ContentHash() : state_(std::make_unique<State>()) { XXH3_128bits_reset(&state_->xxh); }
ContentHash::~ContentHash() = default;

void ContentHash::add(const void* data, std::size_t size) {
  if (size > 0) {
    XXH3_128bits_update(&state_->xxh, data, size);
  }
}

std::string ContentHash::hex() const {
  XXH128_canonical_t canonical;
  XXH128_canonicalFromHash(&canonical, XXH3_128bits_digest(&state_->xxh));
  constexpr std::string_view digits = "0123456789abcdef";
  std::string out;
  for (const unsigned char byte : canonical.digest) {
    out += digits[byte >> 4];
    out += digits[byte & 15];
  }
  return out;
}

std::string hash_of(std::string_view content) {
  ContentHash hash;
  hash.add(content);
  return hash.hex();
}

}  // namespace kf::cache
