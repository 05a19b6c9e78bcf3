#pragma once
// A text of a run for people to read, as what the model answers to a prompt.

#include <cstdint>
#include <string>

namespace kf {

struct TextSample {
  std::int64_t step = 0;
  std::string name;  // "samples/1"
  std::string text;  // UTF-8
};

}  // namespace kf
