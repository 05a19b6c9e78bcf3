#include "report/bundle/bundle.h"

#include <archive.h>
#include <archive_entry.h>
#include <unistd.h>

#include <algorithm>
#include <memory>
#include <string>
#include <system_error>
#include <vector>

#include "core/error.h"
#include "core/plain_file.h"

namespace kf::report {
namespace {

constexpr std::uint64_t kMostFile = std::uint64_t{8} << 30;

/// Of a run's folder, everything but: checkpoints and exports (large), incidents (their batches are data), what is of this machine alone.
constexpr const char* kFiles[] = {"job.toml",      "run.json",    "result.json", "data.fingerprint",
                                  "metrics.jsonl", "metrics.csv", "log.txt",     "steering.jsonl"};
constexpr const char* kFolders[] = {"jobs", "code", "tokenizer", "chat_template", "source", "artifacts"};

/// Relative paths of all files that go in, sorted bytewise.
std::vector<fs::path> files_of(const fs::path& run) {
  std::vector<fs::path> out;
  for (const char* name : kFiles) {
    if (unlike_a_file(run / name).empty()) {
      out.emplace_back(name);
    }
  }
  for (const char* folder : kFolders) {
    std::error_code error;
    for (fs::recursive_directory_iterator it(run / folder, error), end; !error && it != end; it.increment(error)) {
      if (it->is_regular_file(error)) {
        out.push_back(it->path().lexically_relative(run));
      }
    }
    KF_CHECK(!error || !path_exists(run / folder), Code::other, "cannot read {}: {}", run / folder, error.message());
  }
  std::sort(out.begin(), out.end(), [](const fs::path& a, const fs::path& b) { return a.native() < b.native(); });
  return out;
}

struct Free {
  void operator()(archive* a) const { archive_write_free(a); }
  void operator()(archive_entry* e) const { archive_entry_free(e); }
};

class Tar {
 public:
  Tar(const fs::path& file, bool zstd) : out_(archive_write_new()), file_(file) {
    check(archive_write_set_format_pax_restricted(out_.get()));
    check(zstd ? archive_write_add_filter_zstd(out_.get()) : archive_write_add_filter_gzip(out_.get()));
    if (!zstd) {
      check(archive_write_set_filter_option(out_.get(), "gzip", "timestamp", nullptr));  // no time in the head
    }
    check(archive_write_open_filename(out_.get(), file.c_str()));
  }
  void add(const std::string& name, const std::string& content) {
    const std::unique_ptr<archive_entry, Free> entry(archive_entry_new());
    archive_entry_set_pathname(entry.get(), name.c_str());
    archive_entry_set_size(entry.get(), static_cast<std::int64_t>(content.size()));
    archive_entry_set_filetype(entry.get(), AE_IFREG);
    archive_entry_set_perm(entry.get(), 0644);
    archive_entry_set_mtime(entry.get(), 0, 0);
    check(archive_write_header(out_.get(), entry.get()));
    const la_ssize_t written = archive_write_data(out_.get(), content.data(), content.size());
    KF_CHECK(written == static_cast<la_ssize_t>(content.size()), Code::other, "cannot write {}: {}", file_, reason());
  }
  void close() { check(archive_write_close(out_.get())); }

 private:
  std::string reason() const {
    const char* const text = archive_error_string(out_.get());
    return text != nullptr ? text : "the archive cannot be written";
  }
  void check(int status) const { KF_CHECK(status == ARCHIVE_OK, Code::other, "cannot write {}: {}", file_, reason()); }

  std::unique_ptr<archive, Free> out_;
  fs::path file_;
};

/// A file that goes again unless it is named.
class Unnamed {
 public:
  explicit Unnamed(const fs::path& name) : name_(name), path_(name.string() + ".tmp" + std::to_string(::getpid())) {}
  ~Unnamed() {
    std::error_code ignored;
    fs::remove(path_, ignored);
  }
  Unnamed(const Unnamed&) = delete;
  Unnamed& operator=(const Unnamed&) = delete;
  const fs::path& path() const { return path_; }
  void name() const {
    sync_path(path_);
    std::error_code error;
    fs::rename(path_, name_, error);
    KF_CHECK(!error, Code::other, "cannot write {}: {}", name_, error.message());
  }

 private:
  fs::path name_, path_;
};

}  // namespace

Bundled bundle(const fs::path& run, const fs::path& archive) {
  const bool zstd = archive.string().ends_with(".tar.zst");
  KF_CHECK(zstd || archive.string().ends_with(".tar.gz"), Code::config, "{}: an archive's name ends with .tar.zst or .tar.gz", archive);
  std::error_code ignored;
  KF_CHECK(!fs::exists(fs::symlink_status(archive, ignored)), Code::config, "{} is there already; name another file, or remove it",
           archive);
  const std::string name = run.filename().string();
  Bundled out;
  const Unnamed file(archive);
  Tar tar(file.path(), zstd);
  for (const fs::path& path : files_of(run)) {
    tar.add(name + "/" + path.string(), read_regular_file(run / path, kMostFile));
    ++out.files;
  }
  tar.close();
  out.bytes = fs::file_size(file.path());
  file.name();
  return out;
}

}  // namespace kf::report
