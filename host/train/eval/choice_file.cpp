#include "train/eval/choice_file.h"

#include <initializer_list>
#include <utility>

#include "config/tree/json.h"
#include "core/error.h"
#include "train/eval/rolling.h"

namespace kf {
namespace {

/// The one of `names` that the record has.
const config::Node& field(const config::Table& record, std::initializer_list<const char*> names, const std::string& place) {
  const config::Node* found = nullptr;
  const char* first = nullptr;
  std::vector<std::string> all;
  for (const char* name : names) {
    all.push_back(format("\"{}\"", name));
    if (const config::Node* const node = record.find(name)) {
      KF_CHECK(found == nullptr, Code::data, "{}: \"{}\" and \"{}\" say the same; give one of them", place, first, name);
      found = node;
      first = name;
    }
  }
  KF_CHECK(found != nullptr, Code::data, "{}: the record has no {}", place, join(all, " or "));
  return *found;
}

std::vector<std::string> texts(const config::Node& node, const std::string& place) {
  KF_CHECK(node.array() != nullptr && node.array()->size() >= 2, Code::data, "{}: \"choices\" must be a list of two or more texts", place);
  std::vector<std::string> out;
  for (const config::Node& item : *node.array()) {
    const auto* const text = std::get_if<std::string>(&item.value);
    KF_CHECK(text != nullptr && !text->empty(), Code::data, "{}: choice {} is no text, or an empty one", place, out.size());
    out.push_back(*text);
  }
  return out;
}

ChoiceItem item_of(const config::Node& record, const std::string& place) {
  KF_CHECK(record.table() != nullptr, Code::data, "{}: expected an object, {\"prompt\": ..., \"choices\": [...], \"answer\": 0}", place);
  ChoiceItem item;
  const auto* const context = std::get_if<std::string>(&field(*record.table(), {"prompt", "context", "query"}, place).value);
  KF_CHECK(context != nullptr, Code::data, "{}: the text before the answer is no string", place);
  item.context = *context;
  item.choices = texts(field(*record.table(), {"choices"}, place), place);
  const auto* const answer = std::get_if<std::int64_t>(&field(*record.table(), {"answer", "gold"}, place).value);
  const auto count = static_cast<std::int64_t>(item.choices.size());
  KF_CHECK(answer != nullptr && *answer >= 0 && *answer < count, Code::data, "{}: the answer must be the index of a choice, from 0 to {}",
           place, count - 1);
  item.answer = *answer;
  return item;
}

}  // namespace

std::vector<ChoiceItem> parse_choices(std::string_view content, const std::string& name) {
  std::vector<ChoiceItem> items;
  const std::vector<std::string> lines = split(content, '\n');
  for (std::size_t i = 0; i < lines.size(); ++i) {
    if (!trim(lines[i]).empty()) {
      const std::string place = format("{}:{}", name, i + 1);
      items.push_back(item_of(config::parse_json(lines[i], place), place));
      items.back().line = static_cast<std::int64_t>(i) + 1;
    }
  }
  KF_CHECK(!items.empty(), Code::data, "{} holds no question", name);
  return items;
}

ChoiceIds encode_choice(const Tokenizer& tokenizer, std::string context, std::string continuation, const PromptStyle& style) {
  const std::size_t kept = without_spaces(context);
  continuation.insert(0, context, kept);
  context.resize(kept);
  ChoiceIds out;
  std::size_t before = 0;
  if (context.empty()) {
    const std::optional<std::int64_t> first = tokenizer.bos_id() ? tokenizer.bos_id() : tokenizer.eos_id();
    KF_CHECK(first.has_value(), Code::data,
             "the context is empty, and the tokenizer has no id that begins or ends a document to stand for it");
    out.ids = begun_ids(tokenizer, continuation, {});
    if (out.ids.empty() || out.ids.front() != *first) {
      out.ids.insert(out.ids.begin(), *first);
    }
    before = 1;
  } else {
    before = begun_ids(tokenizer, context, style).size();
    out.ids = begun_ids(tokenizer, context + continuation, style);
  }
  KF_CHECK(out.ids.size() > before, Code::data, "nothing is left to score of {}: its text melts into the tokens of the context",
           kf::quoted(continuation));
  out.continuation = static_cast<std::int64_t>(out.ids.size() - before);
  return out;
}

}  // namespace kf
