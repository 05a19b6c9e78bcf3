#include "checkpoint/files/head_source.h"

#include <algorithm>
#include <map>

#include "core/error.h"
#include "core/log.h"

namespace kf {
namespace {

constexpr const char* kHead = "output_head.proj.weight";
constexpr const char* kHeadBias = "output_head.proj.bias";
constexpr const char* kEmbedding = "token_embedding.embedding.weight";

}  // namespace

HeadSource head_source(const std::string& name) {
  return name == "embedding" ? HeadSource::embedding : name == "fresh" ? HeadSource::fresh : HeadSource::file;
}

bool head_is_own(HeadSource source, const std::string& name) {
  return (source == HeadSource::fresh && name == kHead) || (source != HeadSource::file && name == kHeadBias);
}

NamedTensors with_head_from(HeadSource source, const NamedTensors& file, Model& model) {
  if (source == HeadSource::file) {
    return file;
  }
  std::map<std::string, ParameterPtr> own;  // the model's, where it has a head of its own
  for (const ParameterPtr& parameter : model.parameters()) {
    if (parameter->name == kHead || parameter->name == kHeadBias) {
      own[parameter->name] = parameter;
    }
  }
  const bool untied = own.count(kHead) > 0;
  KF_CHECK(untied || source == HeadSource::embedding, Code::config,
           "checkpoint.init_head = \"fresh\" needs a head of its own: set model.tie_embeddings = false");
  const bool held = std::find(file.names.begin(), file.names.end(), kHead) != file.names.end();
  NamedTensors out = file;
  std::erase_if(out.names, [](const std::string& name) { return name == kHead || name == kHeadBias; });
  for (const auto& [name, parameter] : own) {
    out.names.push_back(name);
  }
  const bool copies = source == HeadSource::embedding;
  out.get = [get = file.get, own, copies](const std::string& name) {
    const auto found = own.find(name);
    return found == own.end() ? get(name) : copies && name == kHead ? get(kEmbedding) : found->second->kept();
  };
  if (file.ranged) {
    out.ranged = {[kind = file.ranged->kind, own, copies](const std::string& name) {
                    const auto found = own.find(name);
                    return found == own.end()        ? kind(name)
                           : copies && name == kHead ? kind(kEmbedding)
                                                     : TensorKind{found->second->shape, found->second->master.scalar_type()};
                  },
                  [read = file.ranged->read, own, copies](const TensorPiece& into) {
                    if (own.count(into.name) == 0) {
                      read(into);
                    } else if (copies && into.name == kHead) {
                      read({kEmbedding, into.shape, into.range, into.tensor});
                    }  // else it keeps its own values
                  }};
  }
  const char* const untied_head = copies ? "a copy of the embedding" : "fresh";
  log::info("checkpoint.init_head: the output head is {}{}", untied ? untied_head : "the embedding",
            held ? "; the one of the file is left out" : "");
  return out;
}

}  // namespace kf
