#include "generate/prompt_ids.h"

#include <optional>

#include "core/error.h"

namespace kf {

std::vector<std::int64_t> begun_ids(const Tokenizer& tokenizer, std::string_view text, const PromptStyle& style) {
  std::vector<std::int64_t> ids;
  if (style.as_its_file_says) {
    ids = encode_prompt(tokenizer, text);
  } else {
    std::vector<std::uint32_t> narrow;
    tokenizer.append(text, narrow, {SpecialText::special});
    ids.assign(narrow.begin(), narrow.end());
  }
  const std::optional<std::int64_t> bos = tokenizer.bos_id();
  if (style.bos && bos && (ids.empty() || ids.front() != *bos)) {
    ids.insert(ids.begin(), *bos);
  }
  return ids;
}

std::vector<std::int64_t> prompt_ids(const Tokenizer& tokenizer, const std::string& prompt, const PromptStyle& style) {
  std::vector<std::int64_t> ids = begun_ids(tokenizer, prompt, style);
  if (ids.empty()) {
    const std::optional<std::int64_t> first = tokenizer.eos_id() ? tokenizer.eos_id() : tokenizer.bos_id();
    KF_CHECK(first.has_value(), Code::config,
             "the prompt is empty, and the tokenizer has no id that begins or ends a document to start from");
    ids.push_back(*first);
  }
  return ids;
}

}  // namespace kf
