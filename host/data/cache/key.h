#pragma once
// What decides the content of a cache, and the name that follows from it.

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace kf::cache {

/// Raised when the same parts would give other files.
inline constexpr int kFormat = 1;

struct KeySource {
  std::string name;  // relative to the source's root; not part of the key: a renamed file holds the same
  std::int64_t size = 0;
  std::string kind;  // "JSON lines, gzip"
  std::string hash;
};

struct KeyInputs {
  std::vector<KeySource> sources;     // in order
  std::string tokenizer;              // hash of its content
  std::string tokenizer_description;  // for people; not part of the key
  std::map<std::string, std::string> options;
};

/// 32 hexadecimal digits; the same for the same parts in every process and place.
std::string key_of(const KeyInputs& parts);

/// What is different, for the log: "the tokenizer", "plain.txt (6,111 bytes before, 6,112 now)", "data.add_bos (false before, true now)".
std::vector<std::string> changes(const KeyInputs& before, const KeyInputs& now);

}  // namespace kf::cache
