#pragma once
// What the hub's routes give: the commit of a revision, the files of a data set or model, their bytes.

#include <cstdint>
#include <string>
#include <vector>

#include "core/fs.h"
#include "data/hub/cache.h"
#include "data/hub/http.h"

namespace kf::hub {

/// A file as the repository lists it.
struct RepoFile {
  std::string path;
  std::int64_t size = 0;
  std::string etag;     // its name among the blobs: the sha256 of large files, else git's sha1
  bool sha256 = false;  // which of the two
};

class Client {
 public:
  Client() : Client(endpoint(), token(), Patience{}) {}
  Client(std::string endpoint, std::string token, Patience patience) : http_(std::move(endpoint), std::move(token), patience) {}

  /// /api/datasets/NAME/revision/REVISION, or /api/models/... Throws Code::data.
  std::string commit(const std::string& name, const std::string& revision, RepoType type = RepoType::dataset) const;
  /// /api/datasets/NAME/tree/COMMIT, all pages.
  std::vector<RepoFile> files(const std::string& name, const std::string& commit, RepoType type = RepoType::dataset) const;

  /// Fetches a file to `target`: what is there already of `target` + ".incomplete" is continued, size and checksum are compared, and only
  /// then does it take its name. Throws Code::data; a file that arrived wrong is not kept.
  void download(const std::string& name, const std::string& commit, const RepoFile& file, const fs::path& target,
                RepoType type = RepoType::dataset) const;

 private:
  Http http_;
};

/// Fetches a file into the cache unless it is there, and links it into the commit's snapshot. Downloaders of the same file wait for each
/// other, those of huggingface_hub among them. Returns the path in the snapshot.
fs::path fetch_into(const RepoCache& cache, const Client& client, const std::string& name, const std::string& commit, const RepoFile& file);

}  // namespace kf::hub
