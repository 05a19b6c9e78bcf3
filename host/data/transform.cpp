#include "data/transform.h"

#include <algorithm>

#include "config/config.h"
#include "core/error.h"
#include "data/digest.h"
#include "registry/registries.h"

namespace kf {
namespace {

std::vector<std::unique_ptr<Transform>> make_transforms(const std::vector<std::string>& names, const config::Config& config,
                                                        const Registries* registries) {
  KF_CHECK(registries != nullptr, Code::config, "transforms = [{}]: there are no registered transforms here", join(names, ", "));
  std::vector<std::unique_ptr<Transform>> out;
  for (const std::string& name : names) {
    out.push_back(registries->transform.get(name).factory({config, Registries::options_of(config, "transform", name), *registries}));
  }
  return out;
}

/// What was read and what became of it: another version of a transform is other data.
std::string fingerprint_of(const TextCorpus& before, const std::vector<std::string>& names, const std::vector<Document>& documents) {
  Digest digest;
  digest.add(before.fingerprint);
  digest.add(join(names, ","));
  for (const Document& document : documents) {
    digest.add(document.text);
  }
  return digest.hex();
}

}  // namespace

TextCorpus transform(TextCorpus corpus, const std::vector<std::string>& names, const config::Config& config, const Registries* registries) {
  const std::vector<std::unique_ptr<Transform>> transforms = make_transforms(names, config, registries);
  TextCorpus out;
  out.files = corpus.files;
  for (const Document& document : corpus.documents) {
    auto text = std::make_shared<std::string>(document.text);
    const bool kept = std::all_of(transforms.begin(), transforms.end(), [&](const auto& each) { return each->apply(*text); });
    if (kept && !text->empty()) {
      out.documents.push_back({*text, document.ends});
      out.bytes += static_cast<double>(text->size());
      out.owners.push_back(std::move(text));
    }
  }
  out.tokens = byte_tokens(out.documents);
  out.fingerprint = fingerprint_of(corpus, names, out.documents);
  return out;
}

}  // namespace kf
