#include "data/tokenizer/post_processor.h"

#include "core/error.h"

namespace kf {
namespace {

std::uint32_t id_of(const json::Place& place) { return static_cast<std::uint32_t>(place.as_integer(0, (1 << 26) - 1)); }

/// {"single": [{"SpecialToken": {"id": "<s>"}}, {"Sequence": {"id": "A"}}], "special_tokens": {"<s>": {"ids": [1]}}}
PostProcessor read_template(const json::Place& spec) {
  PostProcessor out;
  bool text_seen = false;
  const json::Place single = spec.at("single");
  for (std::size_t i = 0; i < single.size(); ++i) {
    const json::Place part = single.at(i);
    if (part.has("Sequence")) {
      KF_CHECK(!text_seen && part.at("Sequence").at("id").as_string() == "A", Code::data, "{}: one text, A, is expected once", part.path());
      text_seen = true;
      continue;
    }
    const json::Place ids = spec.at("special_tokens").at(part.at("SpecialToken").at("id").as_string()).at("ids");
    for (std::size_t k = 0; k < ids.size(); ++k) {
      (text_seen ? out.after : out.before).push_back(id_of(ids.at(k)));
    }
  }
  KF_CHECK(text_seen, Code::data, "{} never names the text, {\"Sequence\": {\"id\": \"A\"}}", single.path());
  return out;
}

}  // namespace

PostProcessor read_post_processor(const json::Place& spec) {
  const std::string& type = spec.at("type").as_string();
  if (type == "ByteLevel") {
    return {};  // changes offsets only
  }
  if (type == "TemplateProcessing") {
    return read_template(spec);
  }
  if (type == "BertProcessing" || type == "RobertaProcessing") {
    return {{id_of(spec.at("cls").at(1))}, {id_of(spec.at("sep").at(1))}};
  }
  if (type == "Sequence") {
    PostProcessor out;
    const json::Place list = spec.at("processors");
    for (std::size_t i = 0; i < list.size(); ++i) {
      const PostProcessor inner = read_post_processor(list.at(i));
      out.before.insert(out.before.begin(), inner.before.begin(), inner.before.end());
      out.after.insert(out.after.end(), inner.after.begin(), inner.after.end());
    }
    return out;
  }
  fail(Code::data, "{} = {} is not supported; there are BertProcessing, ByteLevel, RobertaProcessing, Sequence, TemplateProcessing",
       spec.path("type"), kf::quoted(type));
}

}  // namespace kf
