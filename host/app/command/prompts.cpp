#include "app/command/prompts.h"

#include <iostream>
#include <iterator>

#include "config/tree/json.h"
#include "core/error.h"
#include "core/input_file.h"
#include "core/plain_file.h"

namespace kf {
namespace {

std::vector<std::int64_t> ids_of(const config::Node& node, const std::string& place) {
  KF_CHECK(node.array() != nullptr && !node.array()->empty(), Code::data, "{}: \"ids\" must be a list of token ids, with at least one",
           place);
  std::vector<std::int64_t> ids;
  for (const config::Node& item : *node.array()) {
    const auto* const id = std::get_if<std::int64_t>(&item.value);
    KF_CHECK(id != nullptr && *id >= 0, Code::data, "{}: \"ids\" holds something else than whole numbers from 0 on", place);
    ids.push_back(*id);
  }
  return ids;
}

GivenPrompt prompt_of(const config::Node& node, const std::string& place) {
  if (const auto* text = std::get_if<std::string>(&node.value)) {
    return {*text, {}};
  }
  KF_CHECK(node.table() != nullptr, Code::data,
           "{}: expected a JSON string, {\"prompt\": \"text\"}, {\"ids\": [1, 2]} or {\"messages\": [...]}", place);
  if (const config::Node* ids = node.table()->find("ids")) {
    return {"", ids_of(*ids, place)};
  }
  const config::Node* const prompt = node.table()->find("prompt");
  const auto* const text = prompt != nullptr ? std::get_if<std::string>(&prompt->value) : nullptr;
  KF_CHECK(text != nullptr, Code::data, "{}: the object has neither a string \"prompt\" nor a list \"ids\" or \"messages\"", place);
  return {*text, {}};
}

}  // namespace

std::vector<GivenPrompt> parse_prompts(std::string_view content, const std::string& name) {
  std::vector<GivenPrompt> prompts;
  const std::vector<std::string> lines = split(content, '\n');
  for (std::size_t i = 0; i < lines.size(); ++i) {
    if (!trim(lines[i]).empty()) {
      const std::string place = format("{}:{}", name, i + 1);
      const config::Node node = config::parse_json(lines[i], place);
      const bool chat = node.table() != nullptr && node.table()->find("messages") != nullptr;
      prompts.push_back(chat ? GivenPrompt{"", {}, lines[i]} : prompt_of(node, place));
    }
  }
  KF_CHECK(!prompts.empty(), Code::data, "{} holds no prompt", name);
  return prompts;
}

std::vector<GivenPrompt> read_prompts(const std::string& path) {
  if (path == "-") {
    return parse_prompts(std::string(std::istreambuf_iterator<char>(std::cin), {}), "standard input");
  }
  KF_CHECK(path_exists(path), Code::data, "--prompts {}: no such file", path);
  return parse_prompts(read_input(path, Code::data), path);
}

}  // namespace kf
