#include "app/command/export_gguf.h"

#include "checkpoint/gguf/gguf.h"
#include "core/error.h"
#include "data/chat/chat_format.h"
#include "data/hub/model.h"
#include "generate/prompt_ids.h"
#include "model/transformer/adapters.h"

namespace kf {

void export_gguf(const LoadedModel& loaded, const fs::path& file, const std::string& dtype) {
  KF_CHECK(loaded.tokenizer != nullptr, Code::config,
           "{} has no tokenizer, and llama.cpp needs one: put its tokenizer.json beside the model, or give --tokenizer PATH", loaded.path);
  const std::string& tokenizer = loaded.config.data.tokenizer_path;
  const std::vector<std::int64_t> begun = begun_ids(*loaded.tokenizer, "a", loaded.prompts);
  const std::string& chats = loaded.config.data.chat_template;
  const std::string chat_template = chats.empty() ? "" : find_chat_template(chats, tokenizer).source;
  const GgufModel model{loaded.config,
                        merged_weights(*loaded.model),
                        *loaded.tokenizer,
                        tokenizer.empty() ? fs::path() : hub::locate(tokenizer, hub::ModelFiles::tokenizer),
                        loaded.tokenizer->bos_id() == begun.front(),
                        loaded.config.run.name.empty() ? file.stem().string() : loaded.config.run.name,
                        chat_template};
  write_gguf(file, model, gguf::type_named(dtype.empty() ? "F16" : dtype));
}

}  // namespace kf
