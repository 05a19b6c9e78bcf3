// The files of a Hugging Face folder: safetensors, or what came before them.

#include <map>
#include <memory>
#include <set>
#include <utility>

#include "checkpoint/files/stored_tensors.h"
#include "checkpoint/foreign/state_dict.h"
#include "checkpoint/huggingface/import.h"
#include "config/tree/json.h"
#include "core/error.h"
#include "core/plain_file.h"

namespace kf {
namespace {

struct Kind {
  const char* file;
  const char* index;
};
constexpr Kind kKinds[] = {{"model.safetensors", "model.safetensors.index.json"}, {"pytorch_model.bin", "pytorch_model.bin.index.json"}};
constexpr std::uint64_t kMostBytes = std::uint64_t{1} << 30;  // of an index

/// Tensor names by file, from the index of a sharded folder.
std::map<std::string, std::string> read_index(const fs::path& path) {
  const config::Node json = config::parse_json(read_regular_file(path, kMostBytes), path.string());
  const config::Node* map = json.table() ? json.table()->find("weight_map") : nullptr;
  KF_CHECK(map && map->table(), Code::checkpoint, "{} has no weight_map", path);
  std::map<std::string, std::string> files;
  for (const auto& [name, file] : *map->table()) {
    const auto* text = std::get_if<std::string>(&file.value);
    KF_CHECK(text && text->find('/') == std::string::npos, Code::checkpoint, "{}: weight_map.{} is no file name of the folder", path, name);
    files[name] = *text;
  }
  return files;
}

NamedTensors open_file(const fs::path& path) {
  if (path.extension() == ".bin") {
    return open_state_dict(path);
  }
  const auto stored = std::make_shared<const StoredTensors>(path);
  NamedTensors out = named(*stored);
  out.get = [stored, get = out.get](const std::string& name) { return get(name); };  // keeps the file
  out.ranged = {[stored, kind = out.ranged->kind](const std::string& name) { return kind(name); },
                [stored, read = out.ranged->read](const TensorPiece& into) { read(into); }};
  return out;
}

NamedTensors open_shards(const fs::path& folder, const char* index) {
  const auto where = std::make_shared<const std::map<std::string, std::string>>(read_index(folder / index));
  const auto files = std::make_shared<std::map<std::string, NamedTensors>>();
  std::map<std::string, std::set<std::string>> held;
  NamedTensors out;
  for (const auto& [name, file] : *where) {
    if (!files->contains(file)) {
      KF_CHECK(fs::exists(folder / file), Code::checkpoint, "{} is missing: {} names it", folder / file, index);
      const NamedTensors& opened = (*files)[file] = open_file(folder / file);
      held[file] = {opened.names.begin(), opened.names.end()};
    }
    KF_CHECK(held[file].contains(name), Code::checkpoint, "{} holds no {}, which {} promises", folder / file, name, index);
    out.names.push_back(name);
  }
  out.get = [where, files](const std::string& name) { return files->at(where->at(name)).get(name); };
  out.ranged = {[where, files](const std::string& name) { return files->at(where->at(name)).ranged->kind(name); },
                [where, files](const TensorPiece& into) { files->at(where->at(into.name)).ranged->read(into); }};
  return out;
}

}  // namespace

NamedTensors open_huggingface(const fs::path& folder) {
  for (const Kind& kind : kKinds) {
    if (fs::exists(folder / kind.index)) {
      return open_shards(folder, kind.index);
    }
    if (fs::exists(folder / kind.file)) {
      return open_file(folder / kind.file);
    }
  }
  fail(Code::checkpoint,
       "{} holds none of model.safetensors, pytorch_model.bin and their indexes (model.safetensors.index.json, "
       "pytorch_model.bin.index.json); other formats are not read",
       folder);
}

}  // namespace kf
