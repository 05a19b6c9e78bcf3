#pragma once
// How a text is to be continued, and what came of it.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace kf {

class TokenChooser;

struct GenerateOptions {
  std::int64_t max_new_tokens = 64;
  double temperature = 1.0;  // 0 takes the most likely token
  std::int64_t top_k = 0;    // 0 = off
  double top_p = 1.0;
  std::uint64_t seed = 0;                   // prompt i of a batch draws from seed + i
  TokenChooser* strategy = nullptr;         // generate.strategy; null: the native one
  double min_p = 0;                         // 0 = off
  double repetition_penalty = 1;            // 1 = off
  std::vector<std::string> stop = {};       // texts that end an answer
  std::vector<std::int64_t> stop_ids = {};  // ids that do, besides GenerateRequest::ends
  bool shorten = false;                     // a prompt that leaves less room than max_new_tokens gets a shorter answer, not an error
};

/// The answer to one prompt.
struct Completion {
  /// max_new_tokens; the end of a document; one of GenerateOptions::stop or stop_ids
  enum class End { length, eos, stop };

  std::string text;               // bytes as the tokenizer gives them, cut before a stop text
  std::vector<std::int64_t> ids;  // all that were drawn but the one that ended the answer; may reach beyond `text` after a stop text
  std::vector<double> logprobs;   // of each id, under the model itself: before temperature, penalties and cuts
  std::int64_t prompt_tokens = 0;
  End end = End::length;
};

/// "length", "eos", "stop".
inline std::string_view end_name(Completion::End end) {
  return end == Completion::End::eos ? "eos" : end == Completion::End::stop ? "stop" : "length";
}

}  // namespace kf
