#include "checkpoint/weights_file.h"

#include <memory>
#include <optional>
#include <set>
#include <string>

#include "checkpoint/files/stored_tensors.h"
#include "checkpoint/foreign/gguf.h"
#include "checkpoint/foreign/gpt2.h"
#include "checkpoint/foreign/llmc.h"
#include "checkpoint/foreign/state_dict.h"
#include "checkpoint/pickle/saved_file.h"
#include "core/error.h"

namespace kf {
namespace {

std::int64_t rows_of_embedding(Model& model) {
  for (const ParameterPtr& parameter : model.parameters()) {
    if (parameter->name == "token_embedding.embedding.weight") {
      return parameter->shape[0];
    }
  }
  return 0;
}

}  // namespace

void load_weights_file(const fs::path& path, Model& model, const VocabRows& rows, const Placements& placements, const LoadRules& rules) {
  const MappedFile file(path);
  if (is_llmc(file.bytes())) {
    const LlmcFile opened = open_llmc(path, rows_of_embedding(model));
    load_gpt2(opened.tensors, opened.settings, path, model, rows, placements, rules);
  } else if (gguf::is_gguf(file.bytes())) {
    gguf::load_file(path, model, rows, placements, rules);
  } else if (pickle::is_saved_file(file.bytes())) {
    const auto saved = std::make_shared<const pickle::SavedFile>(path);
    const NamedTensors tensors = open_state_dict(saved);
    if (const std::optional<Gpt2Settings> settings = nanogpt_settings(*saved)) {
      load_gpt2(tensors, *settings, path, model, rows, placements, rules);
    } else {
      load_weights_from(tensors, path, model, rows, placements, rules);
    }
  } else {
    static const std::set<std::string> pickled{".pt", ".pth", ".bin", ".ckpt"};
    KF_CHECK(!pickled.contains(path.extension().string()), Code::checkpoint,
             "{}: is no file that torch.save or llm.c wrote; save weights with torch.save(model.state_dict(), FILE), or as safetensors",
             path);
    load_weights_from(StoredTensors(path), model, rows, placements, rules);
  }
}

}  // namespace kf
