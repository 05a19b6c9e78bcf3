#include "data/cache/sources.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <mutex>
#include <sstream>
#include <thread>

#include "core/descriptor.h"
#include "core/error.h"
#include "data/cache/hash.h"

namespace kf::cache {
namespace {

constexpr std::string_view kMark = "kf-host sources 1";
constexpr std::int64_t kSecond = 1'000'000'000;

std::int64_t nanoseconds(const timespec& time) { return time.tv_sec * kSecond + time.tv_nsec; }

std::int64_t now() {
  timespec time{};
  ::clock_gettime(CLOCK_REALTIME, &time);
  return nanoseconds(time);
}

std::string hash_file(const fs::path& path) {
  const Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  KF_CHECK(file.get() >= 0, Code::data, "cannot read {}: {}", path, std::strerror(errno));
  ContentHash hash;
  std::string buffer(std::size_t{4} << 20, '\0');
  for (;;) {
    const ssize_t got = ::read(file.get(), buffer.data(), buffer.size());
    if (got < 0 && errno == EINTR) {
      continue;
    }
    KF_CHECK(got >= 0, Code::data, "cannot read {}: {}", path, std::strerror(errno));
    if (got == 0) {
      return hash.hex();
    }
    hash.add(buffer.data(), static_cast<std::size_t>(got));
  }
}

const HashedFile* find(const SourceMemo& memo, const fs::path& file) {
  const std::string path = fs::absolute(file).string();
  const auto known = std::lower_bound(memo.entries.begin(), memo.entries.end(), path,
                                      [](const SourceMemo::Entry& entry, const std::string& key) { return entry.path < key; });
  return known != memo.entries.end() && known->path == path ? &known->file : nullptr;
}

HashedFile hash_one(const SourceFile& file, const SourceMemo& memo) {
  if (file.remote) {
    return {"hub:" + file.identity, {}};
  }
  HashedFile out{{}, stamp_of(file.path)};
  if (const HashedFile* const known = find(memo, file.path); known != nullptr && known->stamp == out.stamp) {
    out.hash = known->hash;
  } else {
    out.hash = file.identity.empty() ? hash_file(file.path) : "hub:" + file.identity;
    check_unchanged(file, out);
  }
  return out;
}

}  // namespace

Stamp stamp_of(const fs::path& path) {
  struct stat info {};
  KF_CHECK(::stat(path.c_str(), &info) == 0, Code::data, "cannot read {}: {}", path, std::strerror(errno));
  return {info.st_size, nanoseconds(info.st_mtim), nanoseconds(info.st_ctim), info.st_ino, info.st_dev};
}

void check_unchanged(const SourceFile& file, const HashedFile& hashed) {
  if (file.remote) {
    return;
  }
  struct stat info {};
  KF_CHECK(::stat(file.path.c_str(), &info) == 0, Code::data, "{} disappeared while it was read ({}); run again once it is there",
           file.path, std::strerror(errno));
  KF_CHECK(stamp_of(file.path) == hashed.stamp, Code::data,
           "{} changed while it was read; what was made from it is thrown away, run again when nothing writes to it", file.path);
}

std::string memo_id(const SourceFiles& files, const std::string& request) {
  return hash_of(fs::absolute(files.root).lexically_normal().string() + "\n" + request);
}

SourceMemo read_memo(const fs::path& file) {
  SourceMemo memo;
  std::error_code missing;
  if (!fs::exists(file, missing)) {
    return memo;
  }
  std::istringstream in(read_file(file));
  std::string line;
  if (!std::getline(in, line) || line != kMark || !std::getline(in, memo.last_key)) {
    return {};
  }
  while (std::getline(in, line)) {
    std::istringstream words(line);
    SourceMemo::Entry entry;
    Stamp& stamp = entry.file.stamp;
    words >> entry.file.hash >> stamp.size >> stamp.modified >> stamp.changed >> stamp.inode >> stamp.device;
    words.ignore(1);
    if (!words || !std::getline(words, entry.path)) {
      return {};
    }
    memo.entries.push_back(std::move(entry));
  }
  std::sort(memo.entries.begin(), memo.entries.end(), [](const auto& a, const auto& b) { return a.path < b.path; });
  return memo;
}

void write_memo(const fs::path& file, const std::string& key, const SourceFiles& files, const std::vector<HashedFile>& hashed) {
  const std::int64_t safe = now() - 2 * kSecond;  // file systems with times of one second exist
  std::string text = format("{}\n{}\n", kMark, key);
  for (std::size_t i = 0; i < files.files.size(); ++i) {
    const Stamp& s = hashed[i].stamp;
    const std::string path = fs::absolute(files.files[i].path).string();
    if (files.files[i].remote || std::max(s.modified, s.changed) > safe || path.find('\n') != std::string::npos) {
      continue;
    }
    text += format("{} {} {} {} {} {} {}\n", hashed[i].hash, s.size, s.modified, s.changed, s.inode, s.device, path);
  }
  fs::create_directories(file.parent_path());
  write_file_atomic(file, text);
}

bool is_current(const SourceMemo& memo, const std::string& key, const SourceFiles& files, const std::vector<HashedFile>& hashed) {
  for (std::size_t i = 0; i < files.files.size(); ++i) {
    const HashedFile* const known = find(memo, files.files[i].path);
    if (!files.files[i].remote && (known == nullptr || !(known->stamp == hashed[i].stamp))) {
      return false;
    }
  }
  return memo.last_key == key;
}

std::vector<HashedFile> hash_files(const SourceFiles& files, const SourceMemo& memo, std::int64_t threads) {
  std::vector<HashedFile> out(files.files.size());
  std::atomic<std::size_t> next{0};
  std::mutex mutex;
  std::exception_ptr error;
  const auto work = [&] {
    try {
      for (std::size_t i = next++; i < out.size(); i = next++) {
        out[i] = hash_one(files.files[i], memo);
      }
    } catch (const std::exception&) {
      const std::lock_guard lock(mutex);
      error = error ? error : std::current_exception();
      next = out.size();
    }
  };
  {
    std::vector<std::jthread> helpers;
    for (std::int64_t i = 1; i < std::min(threads, static_cast<std::int64_t>(out.size())); ++i) {
      helpers.emplace_back(work);
    }
    work();
  }
  if (error) {
    std::rethrow_exception(error);
  }
  return out;
}

}  // namespace kf::cache
