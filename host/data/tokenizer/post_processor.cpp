#include "data/tokenizer/post_processor.h"

#include <utility>

#include "core/error.h"

namespace kf {
namespace {

std::uint32_t id_of(const json::Place& place) { return static_cast<std::uint32_t>(place.as_integer(0, (1 << 26) - 1)); }

/// What a processor hands to the next one of a sequence: stretches of ids, each treated as a text of its own; one of them holds the text.
struct Stretch {
  std::vector<std::uint32_t> before;
  std::vector<std::uint32_t> after;
  bool text = false;  // whether it lies between the two
};
using Stretches = std::vector<Stretch>;

/// {"single": [{"SpecialToken": {"id": "<s>"}}, {"Sequence": {"id": "A"}}], "special_tokens": {"<s>": {"ids": [1]}}}
Stretches read_template(const json::Place& spec, const Stretches& given) {
  KF_CHECK(given.size() == 1, Code::data, "{}: a template behind another processor that adds tokens is not supported", spec.path());
  Stretches out;
  bool text_seen = false;
  const json::Place single = spec.at("single");
  for (std::size_t i = 0; i < single.size(); ++i) {
    const json::Place part = single.at(i);
    if (part.has("Sequence")) {
      KF_CHECK(!text_seen && part.at("Sequence").at("id").as_string() == "A", Code::data, "{}: one text, A, is expected once", part.path());
      text_seen = true;
      out.push_back(given.front());
      continue;
    }
    Stretch& added = out.emplace_back();
    const json::Place ids = spec.at("special_tokens").at(part.at("SpecialToken").at("id").as_string()).at("ids");
    for (std::size_t k = 0; k < ids.size(); ++k) {
      added.before.push_back(id_of(ids.at(k)));
    }
  }
  KF_CHECK(text_seen, Code::data, "{} never names the text, {\"Sequence\": {\"id\": \"A\"}}", single.path());
  return out;
}

/// BERT puts [CLS] before the first stretch and [SEP] behind each; RoBERTa one more before each that is not the first.
Stretches surround(Stretches stretches, std::uint32_t cls, std::uint32_t sep, bool roberta) {
  for (std::size_t i = 0; i < stretches.size(); ++i) {
    Stretch& stretch = stretches[i];
    if (i == 0 || roberta) {
      stretch.before.insert(stretch.before.begin(), i == 0 ? cls : sep);
    }
    stretch.after.push_back(sep);
  }
  return stretches;
}

Stretches process(const json::Place& spec, Stretches given) {
  const std::string& type = spec.at("type").as_string();
  if (type == "ByteLevel") {
    return given;  // changes offsets only
  }
  if (type == "TemplateProcessing") {
    return read_template(spec, given);
  }
  if (type == "BertProcessing" || type == "RobertaProcessing") {
    return surround(std::move(given), id_of(spec.at("cls").at(1)), id_of(spec.at("sep").at(1)), type == "RobertaProcessing");
  }
  if (type == "Sequence") {
    const json::Place list = spec.at("processors");
    for (std::size_t i = 0; i < list.size(); ++i) {
      given = process(list.at(i), std::move(given));
    }
    return given;
  }
  fail(Code::data, "{} = {} is not supported; there are BertProcessing, ByteLevel, RobertaProcessing, Sequence, TemplateProcessing",
       spec.path("type"), kf::quoted(type));
}

}  // namespace

PostProcessor read_post_processor(const json::Place& spec) {
  PostProcessor out;
  bool text_seen = false;
  for (const Stretch& stretch : process(spec, {Stretch{{}, {}, true}})) {
    std::vector<std::uint32_t>& first = text_seen ? out.after : out.before;
    first.insert(first.end(), stretch.before.begin(), stretch.before.end());
    text_seen = text_seen || stretch.text;
    std::vector<std::uint32_t>& second = text_seen ? out.after : out.before;
    second.insert(second.end(), stretch.after.begin(), stretch.after.end());
  }
  return out;
}

}  // namespace kf
