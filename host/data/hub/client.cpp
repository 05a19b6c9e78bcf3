#include "data/hub/client.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <nlohmann/json.hpp>

#include <cerrno>
#include <cstring>

#include "core/credentials.h"
#include "core/error.h"
#include "core/log.h"
#include "core/progress.h"
#include "core/text.h"
#include "data/hub/checksum.h"

namespace kf::hub {
namespace {

using nlohmann::json;

json parse(const Response& response, const std::string& url) {
  json out = json::parse(response.body, nullptr, false);
  KF_CHECK(!out.is_discarded(), Code::data, "{}: the answer is not JSON", shown_url(url));
  return out;
}

std::string text_of(const json& object, const char* key, const std::string& url) {
  const auto at = object.is_object() ? object.find(key) : object.end();
  KF_CHECK(object.is_object() && at != object.end() && at->is_string(), Code::data, "{}: the answer has no text {}", shown_url(url), key);
  return at->get<std::string>();
}

bool is_hex(std::string_view text, std::size_t size) {
  return text.size() == size && text.find_first_not_of("0123456789abcdef") == std::string_view::npos;
}

RepoFile file_of(const json& entry, const std::string& url) {
  RepoFile out;
  out.path = text_of(entry, "path", url);
  check_repo_path(out.path);
  out.etag = text_of(entry, "oid", url);
  const json* sized = &entry;
  if (const auto lfs = entry.find("lfs"); lfs != entry.end() && lfs->is_object()) {
    out.etag = text_of(*lfs, "oid", url);
    out.sha256 = true;
    sized = &*lfs;
  }
  KF_CHECK(is_hex(out.etag, out.sha256 ? 64 : 40), Code::data, "{}: {} has the odd checksum {}", shown_url(url), out.path,
           kf::quoted(out.etag));
  const auto size = sized->find("size");
  KF_CHECK(size != sized->end() && size->is_number_unsigned() && size->get<std::uint64_t>() < std::uint64_t{1} << 56, Code::data,
           "{}: {} has no size", shown_url(url), out.path);
  out.size = size->get<std::int64_t>();
  return out;
}

/// The address behind rel="next" in a Link header; "" on the last page.
std::string next_page(const Response& response) {
  const auto at = response.headers.find("link");
  if (at == response.headers.end() || at->second.find("rel=\"next\"") == std::string::npos) {
    return "";
  }
  const std::size_t open = at->second.find('<');
  const std::size_t close = at->second.find('>');
  return open == std::string::npos || close == std::string::npos ? "" : at->second.substr(open + 1, close - open - 1);
}

const char* route_of(RepoType type) { return type == RepoType::dataset ? "datasets" : "models"; }

/// An open file that is written at its end.
class Output {
 public:
  explicit Output(const fs::path& path) : path_(path), fd_(::open(path.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0644)) {
    KF_CHECK(fd_ >= 0, Code::data, "cannot write {}: {}", path, std::strerror(errno));
    size_ = ::lseek(fd_, 0, SEEK_END);
  }
  ~Output() { ::close(fd_); }
  Output(const Output&) = delete;
  Output& operator=(const Output&) = delete;

  std::int64_t size() const { return size_; }
  void restart() {
    check(::ftruncate(fd_, 0) == 0 && ::lseek(fd_, 0, SEEK_SET) == 0);
    size_ = 0;
  }
  void add(std::string_view bytes) {
    while (!bytes.empty()) {
      const ssize_t written = ::write(fd_, bytes.data(), bytes.size());
      if (written < 0 && errno == EINTR) {
        continue;
      }
      check(written >= 0);
      bytes.remove_prefix(static_cast<std::size_t>(written));
      size_ += written;
    }
  }
  void sync() { check(::fsync(fd_) == 0); }

 private:
  void check(bool good) const { KF_CHECK(good, Code::data, "cannot write {}: {}", path_, std::strerror(errno)); }
  fs::path path_;
  int fd_;
  std::int64_t size_ = 0;
};

/// Held while a file is fetched; the same lock that huggingface_hub takes.
class Lock {
 public:
  explicit Lock(const fs::path& path) {
    fs::create_directories(path.parent_path());
    fd_ = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644);
    KF_CHECK(fd_ >= 0, Code::data, "cannot write {}: {}", path, std::strerror(errno));
    while (::flock(fd_, LOCK_EX) != 0) {
      KF_CHECK(errno == EINTR, Code::data, "cannot lock {}: {}; set HF_HOME to a folder on a file system that has locks", path,
               std::strerror(errno));
    }
  }
  ~Lock() { ::close(fd_); }
  Lock(const Lock&) = delete;
  Lock& operator=(const Lock&) = delete;

 private:
  int fd_;
};

/// One try at the rest of a file. "" when all bytes are there, else why not, and how long the server wants to be left alone.
Passing try_rest(const Http& http, const std::string& url, const RepoFile& file, Output& out) {
  Progress progress("fetching " + file.path, file.size);
  progress.skip(out.size());
  const std::int64_t from = out.size();
  bool too_long = false;
  bool fresh = from == 0;
  try {
    const Response response = http.try_get(url, from, [&](long status, std::string_view bytes) {
      if (status != 206 && !fresh) {
        out.restart();  // it gives the whole again
      }
      fresh = true;
      too_long = out.size() + static_cast<std::int64_t>(bytes.size()) > file.size;
      if (!too_long) {
        out.add(bytes);
        progress.add(static_cast<std::int64_t>(bytes.size()));
        progress.show();
      }
      return !too_long;
    });
    if (response.status == 416) {
      out.restart();
      return {"the server cannot continue the file"};
    }
    if (response.status != 200 && response.status != 206) {
      if (!may_pass(response.status)) {
        refuse(url, response, http.has_token());
      }
      return {"status " + std::to_string(response.status), retry_after(response)};
    }
  } catch (const Passing& passing) {
    return passing;
  }
  if (too_long) {
    out.restart();
    return {format("more than the {} bytes that the repository lists", file.size), 0};
  }
  return {out.size() == file.size ? "" : format("{} of {} bytes", out.size(), file.size), 0};
}

}  // namespace

std::string Client::commit(const std::string& name, const std::string& revision, RepoType type) const {
  const std::string url =
      format("{}/api/{}/{}/revision/{}", http_.endpoint(), route_of(type), encoded(name, true), encoded(revision, false));
  std::string commit = text_of(parse(http_.get(url), url), "sha", url);
  KF_CHECK(is_hex(commit, 40), Code::data, "{}: the odd commit {}", shown_url(url), kf::quoted(commit));
  return commit;
}

std::vector<RepoFile> Client::files(const std::string& name, const std::string& commit, RepoType type) const {
  std::vector<RepoFile> out;
  std::string url =
      format("{}/api/{}/{}/tree/{}?recursive=true", http_.endpoint(), route_of(type), encoded(name, true), encoded(commit, false));
  while (!url.empty()) {
    const Response response = http_.get(url);
    const json list = parse(response, url);
    KF_CHECK(list.is_array(), Code::data, "{}: the answer is no list of files", shown_url(url));
    for (const json& entry : list) {
      if (text_of(entry, "type", url) == "file") {
        out.push_back(file_of(entry, url));
      }
    }
    url = next_page(response);
  }
  return out;
}

void Client::download(const std::string& name, const std::string& commit, const RepoFile& file, const fs::path& target,
                      RepoType type) const {
  const std::string url = format("{}/{}{}/resolve/{}/{}", http_.endpoint(), type == RepoType::dataset ? "datasets/" : "",
                                 encoded(name, true), encoded(commit, false), encoded(file.path, true));
  const fs::path partial = target.string() + ".incomplete";
  fs::create_directories(target.parent_path());
  for (int tried = 1;; ++tried) {
    Output out(partial);
    if (out.size() > file.size) {
      out.restart();
    }
    Passing failure = out.size() == file.size && file.size > 0 ? Passing{} : try_rest(http_, url, file, out);
    out.sync();
    if (failure.reason.empty()) {
      if (checksum_of(partial, file.sha256) == file.etag) {
        fs::rename(partial, target);
        return;
      }
      out.restart();  // nothing of it can be used
      failure.reason = format("the checksum is not {}", file.etag);
    }
    const int tries = http_.tries_for(failure);
    if (tried >= tries) {
      std::error_code ignored;
      if (out.size() == 0) {
        fs::remove(partial, ignored);
      }
      http_.give_up(url, failure, tried);
    }
    log::warn("{}: {}; trying again ({} of {})", file.path, failure.reason, tried + 1, tries);
    http_.wait(tried, failure.retry_after);
  }
}

fs::path fetch_into(const RepoCache& cache, const Client& client, const std::string& name, const std::string& commit,
                    const RepoFile& file) {
  const fs::path blob = cache.blob(file.etag);
  std::error_code error;
  const auto whole = [&] {
    return fs::is_regular_file(blob, error) && fs::file_size(blob, error) == static_cast<std::uintmax_t>(file.size);
  };
  if (!whole()) {
    const Lock lock(cache.lock(file.etag));
    if (!whole()) {  // another one was faster
      log::info("fetching {} of {} ({})", file.path, name, human_bytes(static_cast<double>(file.size)));
      client.download(name, commit, file, blob, cache.type());
    }
  }
  return cache.link(commit, file.path, file.etag);
}

}  // namespace kf::hub
