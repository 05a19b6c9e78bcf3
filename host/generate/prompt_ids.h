#pragma once
// What stands before a text that a model goes on from. Without torch.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "data/tokenizer/tokenizer.h"

namespace kf {

/// What stands before a prompt, or before the context of a question.
struct PromptStyle {
  bool as_its_file_says = false;  // what the tokenizer's library puts in front of a text (encode_prompt): models of Hugging Face folders
  bool bos = false;               // the BOS id, once: models trained with data.add_bos
};

/// The ids of a text behind what `style` puts in front of it, once; names of special tokens in it are special. May be empty.
std::vector<std::int64_t> begun_ids(const Tokenizer& tokenizer, std::string_view text, const PromptStyle& style);

/// The ids of a prompt, as begun_ids. An empty one is what begins a document: BOS with a style that adds it, else the end-of-document id,
/// else BOS. Throws Code::config where there is neither.
std::vector<std::int64_t> prompt_ids(const Tokenizer& tokenizer, const std::string& prompt, const PromptStyle& style = {});

}  // namespace kf
