#include "config/config.h"
#include "core/error.h"
#include "data/tokenizer/tokenizer.h"
#include "registry/registries.h"

namespace kf {

std::unique_ptr<Tokenizer> make_tokenizer(const config::Config& config, const Registries* registries) {
  const std::string& path = config.data.tokenizer_path;
  if (path.empty()) {
    return std::make_unique<ByteTokenizer>(config.model.vocab_size);
  }
  constexpr std::string_view prefix = "lua:";
  KF_CHECK(path.starts_with(prefix), Code::data,
           "data.tokenizer_path = \"{}\": tokenizer files are not built yet; leave the key out to work on bytes (ids 0 to 255, 256 ends a "
           "document), or name a registered tokenizer, \"lua:NAME\"",
           path);
  const std::string name = path.substr(prefix.size());
  KF_CHECK(registries != nullptr, Code::config, "data.tokenizer_path = \"{}\": there are no registered tokenizers here", path);
  std::unique_ptr<Tokenizer> tokenizer =
      registries->tokenizer.get(name).factory({config, Registries::options_of(config, "tokenizer", name), *registries});
  KF_CHECK(tokenizer->vocab_size() <= config.model.vocab_size, Code::config,
           "the tokenizer '{}' has {} ids, and model.vocab_size is {}; raise model.vocab_size", name, tokenizer->vocab_size(),
           config.model.vocab_size);
  return tokenizer;
}

}  // namespace kf
