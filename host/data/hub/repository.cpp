#include "data/hub/repository.h"

#include <algorithm>
#include <cstdlib>
#include <map>
#include <set>
#include <string_view>

#include "core/error.h"
#include "core/log.h"
#include "core/shell_pattern.h"
#include "core/text.h"
#include "data/file/format.h"
#include "data/hub/card.h"

namespace kf::hub {
namespace {

using Paths = std::vector<std::string>;

bool parts_match(const std::vector<std::string>& pattern, std::size_t p, const std::vector<std::string>& path, std::size_t at) {
  if (p == pattern.size()) {
    return at == path.size();
  }
  if (pattern[p] == "**") {
    return parts_match(pattern, p + 1, path, at) || (at < path.size() && parts_match(pattern, p, path, at + 1));
  }
  return at < path.size() && matches_part(pattern[p], path[at]) && parts_match(pattern, p + 1, path, at + 1);
}

/// Files that are about the data, not of them; and hidden ones.
bool is_about(const std::string& path) {
  const std::vector<std::string> parts = split(path, '/');
  const std::string name = lower(parts.back());
  const bool hidden =
      std::any_of(parts.begin(), parts.end(), [](const std::string& part) { return part[0] == '.' || part.starts_with("__"); });
  // A script of the repository is code that makes the data; text in Python comes in records.
  return hidden || name.ends_with(".py") || name == "readme.md" || name == "license" || name.starts_with("license.") ||
         name == "dataset_infos.json" || name == "dataset_info.json" || name == "dataset_dict.json" || name == "state.json";
}

/// Of a list the data: files of the format that most of them have.
Paths data_of(const Paths& paths, const std::string& name) {
  std::map<FileFormat, std::int64_t> counts;
  for (const std::string& path : paths) {
    const auto kind = kind_of_name(path);
    if (kind && !is_about(path)) {
      ++counts[kind->format];
    }
  }
  if (counts.empty()) {
    return {};
  }
  const FileFormat format =
      std::max_element(counts.begin(), counts.end(), [](const auto& a, const auto& b) { return a.second < b.second; })->first;
  if (counts.size() > 1) {
    log::info("{}: files of several formats; read are those of {}", name, to_text(FileKind{format, Compression::none}));
  }
  Paths out;
  std::copy_if(paths.begin(), paths.end(), std::back_inserter(out), [&](const std::string& path) {
    const auto kind = kind_of_name(path);
    return kind && kind->format == format && !is_about(path);
  });
  return out;
}

Paths matching(const Paths& paths, const std::vector<std::string>& patterns) {
  Paths out;
  std::set<std::string> seen;
  for (const std::string& pattern : patterns) {
    for (const std::string& path : paths) {
      if (path_matches(pattern, path) && seen.insert(path).second) {
        out.push_back(path);
      }
    }
  }
  return out;
}

std::vector<std::string> words_for(const std::string& split) {
  if (split == "train") {
    return {"train", "training"};
  }
  if (split == "validation") {
    return {"validation", "valid", "dev", "val"};
  }
  return split == "test" ? std::vector<std::string>{"test", "testing", "eval", "evaluation"} : std::vector<std::string>{split};
}

/// Whether a word stands in a name by itself: between its ends, digits and "-._ ".
bool has_word(std::string_view name, const std::vector<std::string>& words) {
  const auto separates = [&](std::size_t at) {
    return at >= name.size() || std::string_view("-._ 0123456789").find(name[at]) != std::string_view::npos;
  };
  return std::any_of(words.begin(), words.end(), [&](const std::string& word) {
    for (std::size_t at = name.find(word); at != std::string_view::npos; at = name.find(word, at + 1)) {
      if ((at == 0 || separates(at - 1)) && separates(at + word.size())) {
        return true;
      }
    }
    return false;
  });
}

/// The name in data/NAME-00000-of-00002.parquet; "" for other paths.
std::string sharded_split(const std::string& path) {
  const std::string name = split(path, '/').back();
  if (!path_matches("data/*-[0-9][0-9][0-9][0-9][0-9]-of-[0-9][0-9][0-9][0-9][0-9]*.*", path)) {
    return "";
  }
  return name.substr(0, name.rfind("-of-") - 6);
}

/// Splits of a file by a rule of naming; several words in a name make it several splits', as `datasets` has it.
using Rule = Paths (*)(const std::string& path);

Paths by_shard(const std::string& path) {
  const std::string split = sharded_split(path);
  return split.empty() ? Paths() : Paths{split};
}

Paths by_words(const Paths& names) {
  Paths out;
  for (const char* split : {"train", "validation", "test"}) {
    const std::vector<std::string> words = words_for(split);
    if (std::any_of(names.begin(), names.end(), [&](const std::string& name) { return has_word(name, words); })) {
      out.emplace_back(split);
    }
  }
  return out;
}

Paths by_folder(const std::string& path) {
  Paths names = split(path, '/');
  names.pop_back();
  return by_words(names);
}

Paths by_file(const std::string& path) { return by_words({split(path, '/').back()}); }

[[noreturn]] void no_split(const SplitRequest& request, const std::set<std::string>& splits) {
  fail(Code::data, "{} has no split {}; there are {} (data.hf_dataset_split)", request.name, kf::quoted(request.split),
       splits.empty() ? std::string("none") : join({splits.begin(), splits.end()}, ", "));
}

/// By the names of files and folders: the first rule that says anything about any file counts for all.
Paths by_naming(const SplitRequest& request, const Paths& data) {
  for (const Rule rule : {&by_shard, &by_folder, &by_file}) {
    Paths out;
    std::set<std::string> splits;
    for (const std::string& path : data) {
      const Paths found = rule(path);
      splits.insert(found.begin(), found.end());
      if (std::find(found.begin(), found.end(), request.split) != found.end()) {
        out.push_back(path);
      }
    }
    if (!splits.empty()) {
      if (out.empty()) {
        no_split(request, splits);
      }
      return out;
    }
  }
  if (request.split != "train") {
    no_split(request, {"train"});
  }
  return data;
}

Paths below(const Paths& paths, std::string folder) {
  if (folder.empty() || folder == ".") {
    return paths;
  }
  folder += folder.ends_with('/') ? "" : "/";
  Paths out;
  std::copy_if(paths.begin(), paths.end(), std::back_inserter(out), [&](const std::string& path) { return path.starts_with(folder); });
  return out;
}

const CardConfig& choose(const std::vector<CardConfig>& configs, const SplitRequest& request) {
  std::vector<std::string> names;
  const CardConfig* chosen = configs.size() == 1 && request.config.empty() ? configs.data() : nullptr;
  for (const CardConfig& config : configs) {
    names.push_back(config.name);
    const bool fallback = request.config.empty() && (config.is_default || (config.name == "default" && chosen == nullptr));
    if (config.name == request.config || fallback) {
      chosen = &config;
    }
  }
  KF_CHECK(chosen != nullptr, Code::data, "{} {}; there are {} (data.hf_dataset_config)", request.name,
           request.config.empty() ? "has several configurations" : "has no configuration " + kf::quoted(request.config), join(names, ", "));
  return *chosen;
}

Paths by_card(const SplitRequest& request, const CardConfig& config) {
  if (config.splits.empty()) {
    return by_naming(request, data_of(below(request.paths, config.data_dir), request.name));
  }
  std::set<std::string> names;
  for (const auto& [split, patterns] : config.splits) {
    names.insert(split);
    if (split != request.split) {
      continue;
    }
    std::vector<std::string> full;
    for (const std::string& pattern : patterns) {
      full.push_back(config.data_dir.empty() ? pattern : config.data_dir + "/" + pattern);
    }
    Paths out = data_of(matching(request.paths, full), request.name);
    KF_CHECK(!out.empty(), Code::data, "{}: no data file matches {}, the split {} of its card", request.name, join(full, ", "), split);
    return out;
  }
  no_split(request, names);
}

/// "-of-00003" in a name: what comes before the shard's number, with the number of shards; "" in others.
std::string shard_family(const std::string& path) {
  const std::size_t of = path.rfind("-of-");
  return of == std::string::npos || of < 6 ? "" : path.substr(0, of - 6) + path.substr(of);
}

std::int64_t shards_of(const std::string& family) { return std::atoll(family.c_str() + family.rfind("-of-") + 4); }

}  // namespace

void check_shards(const std::vector<std::string>& paths, const std::string& name) {
  std::map<std::string, std::int64_t> families;
  for (const std::string& path : paths) {
    if (const std::string family = shard_family(path); !family.empty()) {
      ++families[family];
    }
  }
  for (const auto& [family, count] : families) {
    KF_CHECK(count == shards_of(family), Code::data, "{}: {} of {} shards are there ({}); fetch the others with the hub in reach", name,
             count, shards_of(family), family);
  }
}

bool path_matches(const std::string& pattern, const std::string& path) {
  std::vector<std::string> parts = split(pattern, '/');
  std::erase_if(parts, [](const std::string& part) { return part.empty() || part == "."; });
  return parts_match(parts, 0, split(path, '/'), 0);
}

std::vector<std::string> files_of_split(const SplitRequest& request) {
  KF_CHECK(request.split.find('[') == std::string::npos && request.split.find('+') == std::string::npos, Code::config,
           "data.hf_dataset_split = {}: one split by its name; data.max_documents takes a part of it", kf::quoted(request.split));
  SplitRequest sorted = request;
  std::sort(sorted.paths.begin(), sorted.paths.end());
  const std::vector<CardConfig> configs = configs_of_card(request.card, request.name);
  if (!configs.empty()) {
    return by_card(sorted, choose(configs, request));
  }
  // Without a card, a configuration is a folder, as in the branch refs/convert/parquet.
  const Paths data = data_of(below(sorted.paths, request.config), request.name);
  const bool script =
      std::any_of(request.paths.begin(), request.paths.end(), [](const std::string& path) { return path.ends_with(".py"); });
  KF_CHECK(!data.empty(), Code::data, "{}{} holds no files of data that can be read{}", request.name,
           request.config.empty() ? "" : ", folder " + request.config,
           script ? "; it is a loading script, which is not run: try data.hf_dataset_revision = \"refs/convert/parquet\"" : "");
  return by_naming(sorted, data);
}

}  // namespace kf::hub
