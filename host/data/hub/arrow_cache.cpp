#include "data/hub/arrow_cache.h"

#include <algorithm>
#include <cstdlib>

#include "core/error.h"
#include "core/text.h"
#include "data/hub/cache.h"

namespace kf::hub {
namespace {

fs::path datasets_cache() {
  const char* const chosen = std::getenv("HF_DATASETS_CACHE");
  return chosen != nullptr && *chosen != '\0' ? fs::path(chosen) : home() / "datasets";
}

std::vector<fs::path> folders(const fs::path& parent) {
  std::vector<fs::path> out;
  std::error_code error;
  for (fs::directory_iterator it(parent, error), end; !error && it != end; it.increment(error)) {
    if (it->is_directory()) {
      out.push_back(it->path());
    }
  }
  std::sort(out.begin(), out.end());
  return out;
}

/// "name-SPLIT.arrow" or "name-SPLIT-00000-of-00002.arrow".
bool is_of_split(const fs::path& path, const std::string& split) {
  std::string name = path.stem().string();
  const std::size_t shard = name.rfind("-of-");
  if (shard != std::string::npos && shard > 6) {
    name.resize(shard - 6);
  }
  return path.extension() == ".arrow" && name.ends_with("-" + split);
}

std::vector<fs::path> split_files(const fs::path& folder, const std::string& split) {
  std::vector<fs::path> out = glob(folder, "*.arrow");
  std::erase_if(out, [&](const fs::path& path) { return !is_of_split(path, split); });
  return out;
}

}  // namespace

std::optional<SourceFiles> find_prepared(const SourceRequest& request) {
  const fs::path root = datasets_cache() / lower(join(split(request.hf_name, '/'), "___"));
  std::vector<fs::path> configs = folders(root);
  std::erase_if(configs, [&](const fs::path& path) { return !request.hf_config.empty() && path.filename() != request.hf_config; });
  KF_CHECK(configs.size() <= 1, Code::data, "{}: {} holds several configurations; set data.hf_dataset_config", request.hf_name, root);
  fs::path newest;
  fs::file_time_type when{};
  for (const fs::path& config : configs) {
    for (const fs::path& version : folders(config)) {
      for (const fs::path& build : folders(version)) {
        // dataset_info.json is written last: without it the preparation was cut off.
        std::error_code error;
        const auto time = fs::last_write_time(build / "dataset_info.json", error);
        if (!error && (newest.empty() || time > when) && !split_files(build, request.hf_split).empty()) {
          newest = build;
          when = time;
        }
      }
    }
  }
  if (newest.empty()) {
    return std::nullopt;
  }
  SourceFiles out;
  out.root = newest;
  for (const fs::path& path : split_files(newest, request.hf_split)) {
    const auto size = static_cast<std::int64_t>(fs::file_size(path));
    out.files.push_back({path, path.filename().string(), size, {FileFormat::arrow, Compression::none}, "", nullptr});
    out.bytes += size;
  }
  return out;
}

}  // namespace kf::hub
