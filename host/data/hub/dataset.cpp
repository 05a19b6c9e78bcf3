#include "data/hub/dataset.h"

#include <algorithm>
#include <map>

#include "core/error.h"
#include "core/hub_name.h"
#include "core/log.h"
#include "core/real_paths.h"
#include "core/scratch_folder.h"
#include "core/text.h"
#include "data/hub/arrow_cache.h"
#include "data/hub/client.h"
#include "data/hub/repository.h"

namespace kf::hub {
namespace {

/// A file that is fetched when it is read and removed afterwards; a cached one is read where it lies.
class StreamedFile final : public RemoteFile {
 public:
  StreamedFile(RepoCache cache, std::string name, std::string commit, RepoFile file)
      : cache_(std::move(cache)), name_(std::move(name)), commit_(std::move(commit)), file_(std::move(file)) {}

  std::shared_ptr<const fs::path> fetch() const override {
    const fs::path blob = cache_.blob(file_.etag);
    std::error_code error;
    if (fs::is_regular_file(blob, error)) {
      return std::make_shared<const fs::path>(blob);
    }
    struct Fetched {
      ScratchFolder folder{"kf-stream", Code::data};
      fs::path file;
    };
    // The name keeps its suffixes; the folder goes with the last reader, also when the download fails.
    const auto fetched = std::make_shared<Fetched>();
    fetched->file = fetched->folder.path() / fs::path(file_.path).filename();
    Client().download(name_, commit_, file_, fetched->file);
    return {fetched, &fetched->file};
  }

 private:
  RepoCache cache_;
  std::string name_;
  std::string commit_;
  RepoFile file_;
};

std::string address(const std::string& name, const std::string& path) { return "hf://datasets/" + name + "/" + path; }

SourceFiles finish(std::vector<SourceFile> files, const fs::path& root) {
  SourceFiles out;
  out.root = root;
  out.files = std::move(files);
  for (const SourceFile& file : out.files) {
    out.bytes += file.size;
    out.tokens = file.kind.format == FileFormat::tokens;
  }
  return out;
}

SplitRequest split_request(const SourceRequest& request, std::vector<std::string> paths, std::string card) {
  return {request.hf_name, std::move(paths), std::move(card), request.hf_config, request.hf_split};
}

/// From a snapshot on disk alone.
SourceFiles from_snapshot(const SourceRequest& request, const fs::path& snapshot) {
  std::vector<std::string> paths;
  for (const fs::path& path : glob(snapshot, "**")) {
    paths.push_back(path.lexically_relative(snapshot).generic_string());
  }
  std::error_code error;
  const std::string card = fs::is_regular_file(snapshot / "README.md", error) ? read_file(snapshot / "README.md") : "";
  std::vector<SourceFile> files;
  const std::vector<std::string> chosen = files_of_split(split_request(request, paths, card));
  check_shards(chosen, request.hf_name);
  for (const std::string& name : chosen) {
    const fs::path path = snapshot / name;
    KF_CHECK(fs::exists(path, error), Code::data, "{}: {}; without HF_HUB_OFFLINE the file is fetched again", request.hf_name,
             broken_link_fault(path));
    files.push_back({path, name, static_cast<std::int64_t>(fs::file_size(path)), *kind_of_name(name),
                     fs::canonical(path).filename().string(), nullptr});
  }
  return finish(std::move(files), snapshot);
}

/// What is on disk, of the hub's cache or of `datasets`; throws, starting with `why`, when there is nothing.
SourceFiles from_disk(const SourceRequest& request, const RepoCache& cache, const std::string& why) {
  const std::optional<std::string> commit = cache.commit(request.hf_revision);
  std::error_code error;
  if (commit && fs::is_directory(cache.snapshot(*commit), error)) {
    log::info("{}: {}; read from the cache, commit {}", request.hf_name, why, commit->substr(0, 12));
    return from_snapshot(request, cache.snapshot(*commit));
  }
  if (std::optional<SourceFiles> prepared = find_prepared(request)) {
    log::info("{}: {}; read from what datasets has prepared in {}", request.hf_name, why, prepared->root);
    return std::move(*prepared);
  }
  fail(Code::data, "{}: {}, and neither {} nor the cache of datasets holds it", request.hf_name, why, cache.folder());
}

class Online {
 public:
  explicit Online(const SourceRequest& request) : request_(request), cache_(request.hf_name) {}

  SourceFiles resolve() {
    const std::string commit = client_.commit(request_.hf_name, request_.hf_revision);
    std::map<std::string, RepoFile> listed;
    std::vector<std::string> paths;
    for (RepoFile& file : client_.files(request_.hf_name, commit)) {
      paths.push_back(file.path);
      listed.emplace(file.path, std::move(file));
    }
    std::string card;
    if (const auto readme = listed.find("README.md"); readme != listed.end()) {
      card = read_file(fetch_into(cache_, client_, request_.hf_name, commit, readme->second));
    }
    std::vector<SourceFile> files;
    for (const std::string& path : files_of_split(split_request(request_, paths, card))) {
      files.push_back(take(listed.at(path), commit));
    }
    cache_.remember(request_.hf_revision, commit);  // only now: what it names is there
    return finish(std::move(files), cache_.snapshot(commit));
  }

 private:
  SourceFile take(const RepoFile& file, const std::string& commit) {
    KF_CHECK(!request_.hf_streaming || kind_of_name(file.path)->format != FileFormat::tokens, Code::data,
             "{}: {} holds token ids, which are read in any order and cannot be streamed; set data.hf_streaming = false", request_.hf_name,
             file.path);
    SourceFile out{address(request_.hf_name, file.path), file.path, file.size, *kind_of_name(file.path), file.etag, nullptr};
    if (request_.hf_streaming) {
      out.remote = std::make_shared<StreamedFile>(cache_, request_.hf_name, commit, file);
    } else {
      out.path = fetch_into(cache_, client_, request_.hf_name, commit, file);
    }
    return out;
  }

  const SourceRequest& request_;
  RepoCache cache_;
  Client client_;
};

/// The request with the revision that stands in its name, if any. Settings that disagree have been refused before (config/rules/data.cpp).
SourceRequest with_own_revision(SourceRequest request) {
  const HubName named = data_set_name(request.hf_name);
  if (named.name != request.hf_name) {
    KF_CHECK(is_revision(named.revision), Code::config,
             "'{}' has '{}' behind @, which is no branch, tag or commit; write ORG/NAME@REVISION", request.hf_name, named.revision);
    request.hf_name = named.name;
    request.hf_revision = named.revision;
  }
  return request;
}

}  // namespace

SourceFiles resolve_dataset(const SourceRequest& asked) {
  const SourceRequest request = with_own_revision(asked);
  const RepoCache cache(request.hf_name);
  check_repo_path(request.hf_revision);
  if (offline()) {
    return from_disk(request, cache, "offline (HF_HUB_OFFLINE)");
  }
  try {
    return Online(request).resolve();
  } catch (Error& error) {
    // Never a silent fallback: a cached revision may be an old one.
    if (cache.commit(request.hf_revision)) {
      error.context(
          format("the cache holds {}, revision {}: HF_HUB_OFFLINE=1 reads it without the hub", request.hf_name, request.hf_revision));
    }
    throw;
  }
}

}  // namespace kf::hub
