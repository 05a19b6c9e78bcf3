#pragma once
// What a tokenizer puts around a text: the post-processors of tokenizer.json, for single texts.

#include <cstdint>
#include <vector>

#include "data/tokenizer/json.h"

namespace kf {

struct PostProcessor {
  std::vector<std::uint32_t> before;
  std::vector<std::uint32_t> after;
};

PostProcessor read_post_processor(const json::Place& spec);

}  // namespace kf
