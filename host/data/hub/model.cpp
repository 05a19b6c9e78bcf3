#include "data/hub/model.h"

#include <algorithm>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "config/tree/json.h"
#include "core/error.h"
#include "core/input_file.h"
#include "core/log.h"
#include "core/text.h"
#include "data/hub/client.h"

namespace kf::hub {
namespace {

/// A model's weights, whole or in the shards that an index names.
struct Weights {
  const char* file;
  const char* index;
};
// In the order of preference. Pickled ones are read by checkpoint/pickle, which calls nothing.
constexpr Weights kWeights[] = {{"model.safetensors", "model.safetensors.index.json"},
                                {"pytorch_model.bin", "pytorch_model.bin.index.json"}};

using Names = std::vector<std::string>;

/// The first kind of which there is a file; the first one where there is none.
template <class Has>
const Weights& weights_in(const Has& has) {
  const auto* const found =
      std::find_if(std::begin(kWeights), std::end(kWeights), [&](const Weights& kind) { return has(kind.file) || has(kind.index); });
  return found == std::end(kWeights) ? kWeights[0] : *found;
}

/// The shards that the index names.
Names shards_of(const fs::path& index) {
  const config::Node json = config::parse_json(read_input(index, Code::data), index.string());
  const config::Node* const map = json.table() == nullptr ? nullptr : json.table()->find("weight_map");
  KF_CHECK(map != nullptr && map->table() != nullptr, Code::data, "{} has no weight_map", index);
  std::set<std::string> files;
  for (const auto& [tensor, file] : *map->table()) {
    const auto* const text = std::get_if<std::string>(&file.value);
    KF_CHECK(text != nullptr, Code::data, "{}: weight_map.{} is no file name", index, tensor);
    check_repo_path(*text);
    files.insert(*text);
  }
  return {files.begin(), files.end()};
}

/// Of the files in `there`, those of the tokenizer that open_tokenizer takes, and what says how it is used.
Names tokenizer_files(const std::set<std::string>& there) {
  Names out;
  const auto take = [&](std::initializer_list<const char*> names) {
    const bool all = std::all_of(names.begin(), names.end(), [&](const char* name) { return there.contains(name); });
    if (all) {
      out.insert(out.end(), names.begin(), names.end());
    }
    return all;
  };
  const bool found = take({"tokenizer.json"}) || take({"tekken.json"}) || take({"tokenizer.model"}) || take({"vocab.json", "merges.txt"});
  if (!found) {
    std::copy_if(there.begin(), there.end(), std::back_inserter(out), [](const std::string& name) { return name.ends_with(".tiktoken"); });
  }
  if (!out.empty()) {
    for (const char* side : {"tokenizer_config.json", "special_tokens_map.json", "added_tokens.json", "chat_template.jinja",
                             "chat_template.json", "generation_config.json"}) {
      take({side});
    }
  }
  return out;
}

/// One try to get a part of a repository, by the hub or from disk.
class Fetcher {
 public:
  Fetcher(const HubName& name, ModelFiles part) : name_(name), part_(part), cache_(name.name, RepoType::model) {}

  fs::path fetch() {
    if (offline()) {
      return from_disk("offline (HF_HUB_OFFLINE)");
    }
    if (const std::optional<std::string> commit = cache_.commit(name_.revision); commit == name_.revision && is_whole(*commit)) {
      return cache_.snapshot(*commit);  // a commit never changes
    }
    try {
      return online();
    } catch (const Unreachable& error) {
      const std::optional<std::string> commit = cache_.commit(name_.revision);
      if (!commit || !is_whole(*commit)) {
        throw;
      }
      log::warn("{}", error.what());
      return from_disk("the hub cannot be reached");
    }
  }

 private:
  fs::path online() {
    const Client client;
    const std::string commit = client.commit(name_.name, name_.revision, RepoType::model);
    std::map<std::string, RepoFile> listed;
    std::set<std::string> names;
    for (RepoFile& file : client.files(name_.name, commit, RepoType::model)) {
      names.insert(file.path);
      listed.emplace(file.path, std::move(file));
    }
    const auto take = [&](const std::string& path) {
      const auto at = listed.find(path);
      KF_CHECK(at != listed.end(), Code::data, "{} has no {}, which its index names", name_.name, path);
      return fetch_into(cache_, client, name_.name, commit, at->second);
    };
    check_listed(names);
    if (part_ != ModelFiles::tokenizer) {
      take("config.json");
      if (names.contains("generation_config.json")) {
        take("generation_config.json");
      }
    }
    if (part_ != ModelFiles::config) {
      for (const std::string& name : tokenizer_files(names)) {
        take(name);
      }
    }
    if (part_ == ModelFiles::weights) {
      const Weights& kind = weights_in([&](const char* name) { return names.contains(name); });
      for (const std::string& name : names.contains(kind.index) ? shards_of(take(kind.index)) : Names{kind.file}) {
        take(name);
      }
    }
    cache_.remember(name_.revision, commit);  // only now: what it names is there
    log::info("{}: {} of the hub, commit {}", name_.name, name_.revision, commit.substr(0, 12));
    return cache_.snapshot(commit);
  }

  /// What the part needs and the repository has not.
  void check_listed(const std::set<std::string>& names) const {
    KF_CHECK(part_ == ModelFiles::tokenizer || names.contains("config.json"), Code::data,
             "{} has no config.json, so it is no model that can be read", name_.name);
    KF_CHECK(part_ != ModelFiles::tokenizer || !tokenizer_files(names).empty(), Code::data,
             "{} holds no tokenizer: tokenizer.json, tekken.json, tokenizer.model, vocab.json with merges.txt or *.tiktoken", name_.name);
    const Weights& kind = weights_in([&](const char* name) { return names.contains(name); });
    KF_CHECK(part_ != ModelFiles::weights || names.contains(kind.file) || names.contains(kind.index), Code::data,
             "{} holds none of model.safetensors, pytorch_model.bin and their indexes (model.safetensors.index.json, "
             "pytorch_model.bin.index.json), so it has no weights that can be read",
             name_.name);
  }

  bool is_whole(const std::string& commit) const {
    std::error_code error;
    const fs::path folder = cache_.snapshot(commit);
    const auto has = [&](const std::string& name) { return fs::is_regular_file(folder / name, error); };
    std::set<std::string> names;
    for (fs::directory_iterator it(folder, error), end; !error && it != end; it.increment(error)) {
      names.insert(it->path().filename().string());
    }
    if (part_ == ModelFiles::tokenizer) {
      const Names files = tokenizer_files(names);
      return !files.empty() && std::all_of(files.begin(), files.end(), has);
    }
    if (!has("config.json") || part_ == ModelFiles::config) {
      return has("config.json");
    }
    const Weights& kind = weights_in(has);
    const Names shards = has(kind.index) ? shards_of(folder / kind.index) : Names{kind.file};
    return std::all_of(shards.begin(), shards.end(), has);
  }

  fs::path from_disk(const std::string& why) const {
    const std::optional<std::string> commit = cache_.commit(name_.revision);
    KF_CHECK(commit, Code::data, "{}: {}, and {} holds no revision {} of it; fetch it once with the hub in reach", name_.name, why,
             cache_.folder(), name_.revision);
    KF_CHECK(is_whole(*commit), Code::data, "{}: {}, and {} holds only some of its files: {}; fetch the others with the hub in reach",
             name_.name, why, cache_.snapshot(*commit), missing_words());
    log::info("{}: {}; read from the cache, commit {}", name_.name, why, commit->substr(0, 12));
    return cache_.snapshot(*commit);
  }

  std::string missing_words() const {
    switch (part_) {
      case ModelFiles::config: return "no config.json";
      case ModelFiles::tokenizer: return "no tokenizer";
      case ModelFiles::weights: break;
    }
    return "not all of config.json and the weights";
  }

  const HubName& name_;
  ModelFiles part_;
  RepoCache cache_;
};

}  // namespace

fs::path fetch_model(const HubName& name, ModelFiles part) {
  static std::mutex mutex;
  static std::map<std::pair<std::string, ModelFiles>, fs::path> known;  // one question in a process: all its parts see one commit
  const std::lock_guard lock(mutex);
  const std::pair key{name.name + "@" + name.revision, part};
  std::error_code error;
  if (const auto at = known.find(key); at != known.end() && fs::is_directory(at->second, error)) {
    return at->second;
  }
  return known[key] = Fetcher(name, part).fetch();
}

fs::path locate(const std::string& text, ModelFiles part) {
  std::error_code error;
  if (fs::exists(text, error)) {
    return text;
  }
  const std::optional<HubName> name = hub_name(text, part == ModelFiles::tokenizer);
  if (!name) {
    return text;
  }
  try {
    return fetch_model(*name, part);
  } catch (Error& failure) {
    failure.context(format("there is no file or folder {}, so it was looked for on the Hugging Face hub", kf::quoted(text)));
    throw;
  }
}

std::string not_located(const std::string& text) {
  return format("{} does not exist, and is no name of a model of the Hugging Face hub (ORG/NAME, ORG/NAME@REVISION, gpt2)", text);
}

}  // namespace kf::hub
