#pragma once
// Questions with several answers to choose from, as JSON lines, and how they become token ids. Without torch.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "data/tokenizer/tokenizer.h"
#include "generate/prompt_ids.h"

namespace kf {

struct ChoiceItem {
  std::string context;
  std::vector<std::string> choices;
  std::int64_t answer = 0;  // index of the right one
  std::int64_t line = 0;    // in the file, from 1
};

/// One question a line: the text before the answer is "prompt", "context" or "query" (one of them; it may be ""), "choices" lists the
/// answers, "answer" or "gold" is the index of the right one, from 0. Other keys are passed over, and so are blank lines. Throws Code::data
/// with `name`, the line and what was expected.
std::vector<ChoiceItem> parse_choices(std::string_view content, const std::string& name);

/// A continuation behind its context.
struct ChoiceIds {
  std::vector<std::int64_t> ids;  // all of them
  std::int64_t continuation = 0;  // how many at the end are scored
};

/// As lm-evaluation-harness (0.4.13) divides them: white space at the end of the context goes to the continuation, and what is scored is
/// ids(context + continuation) without as many ids as ids(context) has, where ids() puts in front what `style` says, unless the text begins
/// with it. An empty context is the BOS id, or else the end-of-document id, unless the continuation begins with that. Names of special
/// tokens are special. Throws Code::data where nothing is left to score, or there is no such id.
ChoiceIds encode_choice(const Tokenizer& tokenizer, std::string context, std::string continuation, const PromptStyle& style = {});

}  // namespace kf
