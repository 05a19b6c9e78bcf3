#include "data/hub/cache.h"

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>

#include "core/error.h"
#include "core/text.h"

namespace kf::hub {
namespace {

std::string environment(const char* name) {
  const char* const value = std::getenv(name);
  return value == nullptr ? "" : value;
}

/// "~" at the start is the user's home, as Python's tools expand it.
fs::path expanded(const std::string& path) {
  return path.starts_with("~/") ? fs::path(environment("HOME")) / path.substr(2) : fs::path(path);
}

bool is_on(const char* name) {
  const std::string value = lower(environment(name));
  return value == "1" || value == "true" || value == "yes" || value == "on";
}

fs::path hub_cache() {
  for (const char* name : {"HF_HUB_CACHE", "HUGGINGFACE_HUB_CACHE"}) {
    if (const std::string chosen = environment(name); !chosen.empty()) {
      return expanded(chosen);
    }
  }
  return home() / "hub";
}

bool is_name_part(std::string_view part) {
  return !part.empty() && part.size() <= 96 && part[0] != '.' && part[0] != '-' && std::all_of(part.begin(), part.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' || c == '_' || c == '.';
  });
}

std::string folder_name(const std::string& name, RepoType type) {
  const std::vector<std::string> parts = split(name, '/');
  KF_CHECK(!parts.empty() && parts.size() <= 2 && std::all_of(parts.begin(), parts.end(), is_name_part), Code::config,
           "{} is no name of a {}; names are owner/name", kf::quoted(name), type == RepoType::dataset ? "data set" : "model");
  return (type == RepoType::dataset ? "datasets--" : "models--") + join(parts, "--");
}

}  // namespace

fs::path home() {
  if (const std::string chosen = environment("HF_HOME"); !chosen.empty()) {
    return expanded(chosen);
  }
  const std::string cache = environment("XDG_CACHE_HOME");
  return (cache.empty() ? fs::path(environment("HOME")) / ".cache" : expanded(cache)) / "huggingface";
}

std::string token() {
  for (const char* name : {"HF_TOKEN", "HUGGING_FACE_HUB_TOKEN"}) {
    if (std::string value(trim(environment(name))); !value.empty()) {
      return value;
    }
  }
  const std::string chosen = environment("HF_TOKEN_PATH");
  const fs::path path = chosen.empty() ? home() / "token" : expanded(chosen);
  std::error_code error;
  return fs::is_regular_file(path, error) ? std::string(trim(read_file(path))) : "";
}

std::string endpoint() {
  std::string chosen = environment("HF_ENDPOINT");
  while (chosen.ends_with('/')) {
    chosen.pop_back();
  }
  return chosen.empty() ? "https://huggingface.co" : chosen;
}

bool offline() { return is_on("HF_HUB_OFFLINE") || is_on("HF_DATASETS_OFFLINE"); }

RepoCache::RepoCache(const std::string& name, RepoType type) : RepoCache(name, hub_cache(), type) {}

RepoCache::RepoCache(const std::string& name, const fs::path& root, RepoType type)
    : type_(type), folder_(root / folder_name(name, type)), locks_(root / ".locks" / folder_name(name, type)) {}

std::optional<std::string> RepoCache::commit(const std::string& revision) const {
  check_repo_path(revision);
  std::error_code error;
  if (fs::is_directory(snapshot(revision), error)) {
    return revision;  // it is a commit
  }
  const fs::path ref = folder_ / "refs" / revision;
  if (!fs::is_regular_file(ref, error)) {
    return std::nullopt;
  }
  std::string commit(trim(read_file(ref)));
  check_repo_path(commit);
  return commit;
}

void RepoCache::remember(const std::string& revision, const std::string& commit) const {
  const fs::path ref = folder_ / "refs" / revision;
  if (revision != commit) {
    fs::create_directories(ref.parent_path());
    write_file_atomic(ref, commit);
  }
}

fs::path RepoCache::link(const std::string& commit, const std::string& path, const std::string& etag) const {
  fs::path place = snapshot(commit) / path;
  std::error_code error;
  if (fs::exists(place, error)) {
    return place;
  }
  fs::create_directories(place.parent_path());
  const fs::path target = fs::path(blob(etag)).lexically_relative(place.parent_path());
  static std::atomic<int> number = 0;  // threads of one process link the same file, too
  const fs::path temporary = place.string() + ".tmp" + std::to_string(::getpid()) + "." + std::to_string(number++);
  fs::remove(temporary, error);
  fs::create_symlink(target, temporary);
  fs::rename(temporary, place);  // over what another downloader has put there meanwhile
  return place;
}

void check_repo_path(const std::string& path) {
  const std::vector<std::string> parts = split(path, '/');
  const bool good =
      !path.empty() && path.find('\0') == std::string::npos && path.find('\\') == std::string::npos &&
      std::none_of(parts.begin(), parts.end(), [](const std::string& part) { return part.empty() || part == "." || part == ".."; });
  KF_CHECK(good, Code::data, "{} is no path of a repository", kf::quoted(path));
}

}  // namespace kf::hub
