// Any bytes as a tokenizer's file: an error or a tokenizer, never a crash or a hang; what opens encodes and decodes. The first byte of an
// input says which kind of file the rest is; after a line "%%" follows the text to encode.

#include <cstdint>
#include <cstdio>
#include <string>

#include "core/error.h"
#include "core/log.h"
#include "data/tokenizer/file_tokenizer.h"

namespace {

std::unique_ptr<kf::FileTokenizer> open(char kind, const std::string& content) {
  switch (kind) {
    case 'h': return kf::open_huggingface(kf::json::parse(content, "fuzz"), content, "/nowhere/fuzz.json");
    case 't': return kf::open_tiktoken(content, "/nowhere/cl100k.tiktoken");
    case 'k': return kf::open_tekken(kf::json::parse(content, "fuzz"), content, "/nowhere/tekken.json");
    default: return kf::open_sentencepiece(content, "/nowhere/fuzz.model");
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string input(reinterpret_cast<const char*>(data), size);
  if (input.empty()) {
    return 0;
  }
  const std::size_t cut = input.rfind("\n%%\n");
  const std::string content = input.substr(1, cut == std::string::npos ? cut : cut - 1);
  const std::string text = cut == std::string::npos ? "Hello, w\xc3\xb6rld 123 \xff <s>" : input.substr(cut + 4);
  try {
    const std::unique_ptr<kf::FileTokenizer> tokenizer = open(input[0], content);
    for (const kf::SpecialText special : {kf::SpecialText::text, kf::SpecialText::special, kf::SpecialText::error}) {
      try {
        std::vector<std::uint32_t> ids;
        tokenizer->append(text, ids, {special, kf::Surround::text});
        const std::vector<std::int64_t> wide(ids.begin(), ids.end());
        tokenizer->decode(wide);
        tokenizer->decode_with_special(wide);
      } catch (const kf::Error&) {  // no unknown token, or a special one in the text
      }
    }
  } catch (const kf::Error&) {
  }
  return 0;
}
