#pragma once
// The hub's cache on disk, laid out as huggingface_hub has it, so that both find what the other has fetched:
//   datasets--OWNER--NAME/blobs/ETAG, snapshots/COMMIT/PATH -> ../../blobs/ETAG, refs/REVISION with the commit; models--OWNER--NAME.

#include <optional>
#include <string>

#include "core/fs.h"

namespace kf::hub {

/// HF_HOME, else $XDG_CACHE_HOME/huggingface, else ~/.cache/huggingface.
fs::path home();
/// HF_TOKEN, else the file that `hf auth login` writes (HF_TOKEN_PATH or HOME/token); "" for none.
std::string token();
/// HF_ENDPOINT without a slash at its end, else https://huggingface.co.
std::string endpoint();
/// HF_HUB_OFFLINE or HF_DATASETS_OFFLINE.
bool offline();

enum class RepoType { dataset, model };

class RepoCache {
 public:
  /// `name` is "owner/name" or "name". Throws Code::config when it cannot be one.
  explicit RepoCache(const std::string& name, RepoType type = RepoType::dataset);
  RepoCache(const std::string& name, const fs::path& root, RepoType type = RepoType::dataset);

  const fs::path& folder() const { return folder_; }
  RepoType type() const { return type_; }
  /// The commit that a revision stood for when it was last asked; nothing when it never was.
  std::optional<std::string> commit(const std::string& revision) const;
  void remember(const std::string& revision, const std::string& commit) const;
  fs::path snapshot(const std::string& commit) const { return folder_ / "snapshots" / commit; }
  fs::path blob(const std::string& etag) const { return folder_ / "blobs" / etag; }
  fs::path lock(const std::string& etag) const { return locks_ / (etag + ".lock"); }
  /// Makes snapshots/COMMIT/PATH a link to the blob, or leaves it when it is there.
  fs::path link(const std::string& commit, const std::string& path, const std::string& etag) const;

 private:
  RepoType type_;
  fs::path folder_;
  fs::path locks_;
};

/// A path of a repository: relative, without "..". Throws Code::data.
void check_repo_path(const std::string& path);

}  // namespace kf::hub
