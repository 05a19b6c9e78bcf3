#include "run/answer_ends.h"

#include <algorithm>
#include <optional>

#include "core/error.h"
#include "core/log.h"
#include "generate/chat_prompts.h"

namespace kf {

std::vector<std::int64_t> answer_ends(const config::Config& config, const Tokenizer* tokenizer) {
  std::vector<std::int64_t> out;
  const auto add = [&](const std::optional<std::int64_t>& id) {
    if (id && std::find(out.begin(), out.end(), *id) == out.end()) {
      out.push_back(*id);
    }
  };
  add(config.data.eos_id ? config.data.eos_id : tokenizer != nullptr ? tokenizer->eos_id() : std::nullopt);
  const config::DataConfig& data = config.data;
  const bool chats = reads_chats(data) || !data.chat_template.empty() || data.prompt_as_chat;
  if (tokenizer == nullptr || !chats) {
    return out;
  }
  try {
    for (const std::int64_t id : ChatPrompts(data, *tokenizer, false).ends()) {
      add(id);
    }
  } catch (const Error& error) {  // a template that is gone, or refuses two plain messages: texts can be continued all the same
    log::warn("what ends an answer in a chat is not known: {}", error.what());
  }
  return out;
}

}  // namespace kf
