#include "config/schema/config.h"
#include "core/error.h"
#include "data/hub/model.h"
#include "data/tokenizer/tokenizer.h"
#include "registry/registries.h"

namespace kf {

std::unique_ptr<Tokenizer> open_named_tokenizer(const std::string& text, std::int64_t model_vocab) {
  const fs::path path = hub::locate(text, hub::ModelFiles::tokenizer);
  std::error_code error;
  KF_CHECK(fs::exists(path, error), Code::data, "{}", hub::not_located(text));
  return open_tokenizer(path.string(), model_vocab);
}

std::unique_ptr<Tokenizer> make_tokenizer(const config::Config& config, const Registries* registries) {
  const std::string& path = config.data.tokenizer_path;
  if (path.empty()) {
    return std::make_unique<ByteTokenizer>(config.model.vocab_size);
  }
  constexpr std::string_view prefix = "lua:";
  std::unique_ptr<Tokenizer> tokenizer;
  if (path.starts_with(prefix)) {
    const std::string name = path.substr(prefix.size());
    KF_CHECK(registries != nullptr, Code::config, "data.tokenizer_path = \"{}\": there are no registered tokenizers here", path);
    tokenizer = make_part(registries->tokenizer, name, config, *registries);
  } else {
    try {
      tokenizer = open_named_tokenizer(path, config.model.vocab_size);
    } catch (Error& error) {
      throw error.context("data.tokenizer_path = " + kf::quoted(path));
    }
  }
  KF_CHECK(tokenizer->vocab_size() <= config.model.vocab_size, Code::config,
           "data.tokenizer_path = {} has {} ids, and model.vocab_size is {}; set model.vocab_size to {} or more{}", kf::quoted(path),
           tokenizer->vocab_size(), config.model.vocab_size, tokenizer->vocab_size(),
           config.checkpoint.init_from ? ", and checkpoint.init_vocab = \"mean\" or \"init\" where the weights have fewer rows" : "");
  return tokenizer;
}

}  // namespace kf
