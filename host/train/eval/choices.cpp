#include "train/eval/choices.h"

#include <algorithm>
#include <cmath>
#include <span>

#include "core/error.h"
#include "core/log.h"
#include "train/eval/score_ids.h"

namespace kf {
namespace {

/// Code points of UTF-8, as Python counts the characters of a string.
std::int64_t characters_in(const std::string& text) {
  return std::count_if(text.begin(), text.end(), [](char c) { return (static_cast<unsigned char>(c) & 0xC0U) != 0x80U; });
}

/// The first of the largest.
std::int64_t largest(const std::vector<double>& values) { return std::max_element(values.begin(), values.end()) - values.begin(); }

std::vector<double> divided(const std::vector<double>& values, const std::vector<std::int64_t>& by) {
  std::vector<double> out;
  for (std::size_t i = 0; i < values.size(); ++i) {
    out.push_back(values[i] / static_cast<double>(by[i]));
  }
  return out;
}

/// The ids of an answer behind its question, the beginning of which is cut off where they are too many; true then.
bool encode(const Tokenizer& tokenizer, const ChoiceItem& item, std::size_t choice, const std::string& place, const ChoiceOptions& options,
            ChoiceIds& out) {
  try {
    out = encode_choice(tokenizer, item.context, options.delimiter + item.choices[choice], options.style);
  } catch (const Error& error) {
    fail(error.code(), "{}: {}", place, error.what());
  }
  const std::int64_t most = options.max_positions + 1;
  if (options.max_positions == 0 || static_cast<std::int64_t>(out.ids.size()) <= most) {
    return false;
  }
  KF_CHECK(out.continuation < most, Code::data, "{}: the answer has {} tokens, and the model takes {} (model.max_seq_len)", place,
           out.continuation, options.max_positions);
  out.ids.erase(out.ids.begin(), out.ids.end() - most);
  return true;
}

ChoiceScores scores_of(const ChoiceItem& item, std::span<const double> sums) {
  ChoiceScores out;
  out.loglikelihoods.assign(sums.begin(), sums.end());
  for (const std::string& choice : item.choices) {
    out.bytes.push_back(static_cast<std::int64_t>(choice.size()));
    out.characters.push_back(characters_in(choice));
  }
  out.best = largest(out.loglikelihoods);
  out.best_by_characters = largest(divided(out.loglikelihoods, out.characters));
  out.best_by_bytes = largest(divided(out.loglikelihoods, out.bytes));
  return out;
}

}  // namespace

Accuracy accuracy_of(const std::vector<bool>& right) {
  const auto n = static_cast<double>(right.size());
  Accuracy out;
  out.value = static_cast<double>(std::count(right.begin(), right.end(), true)) / n;
  if (right.size() > 1) {
    out.error = std::sqrt(out.value * (1 - out.value) / (n - 1));
  }
  return out;
}

std::vector<ChoiceScores> score_choices(Model& model, const Tokenizer& tokenizer, const std::vector<ChoiceItem>& items,
                                        const std::string& name, const ChoiceOptions& options) {
  std::vector<ChoiceIds> texts;
  std::int64_t cut = 0;
  for (const ChoiceItem& item : items) {
    for (std::size_t c = 0; c < item.choices.size(); ++c) {
      cut += encode(tokenizer, item, c, format("{}:{}, choice {}", name, item.line, c), options, texts.emplace_back()) ? 1 : 0;
    }
  }
  if (cut > 0) {
    log::warn("{} of {} answers did not fit into model.max_seq_len ({}): their contexts lost their beginning", cut, texts.size(),
              options.max_positions);
  }
  const std::vector<double> sums = loglikelihoods(model, texts, options.device, options.batch_size);
  std::vector<ChoiceScores> out;
  std::size_t at = 0;
  for (const ChoiceItem& item : items) {
    out.push_back(scores_of(item, std::span(sums).subspan(at, item.choices.size())));
    at += item.choices.size();
  }
  return out;
}

}  // namespace kf
