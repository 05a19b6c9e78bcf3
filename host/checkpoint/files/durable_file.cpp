#include "checkpoint/files/durable_file.h"

#include <fcntl.h>
#include <libdeflate.h>
#include <unistd.h>
#include <zlib.h>  // crc32_combine

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cstdio>
#include <cstring>
#include <utility>

#include "core/error.h"
#include "core/group_sync.h"
#include "core/plain_file.h"

namespace kf {

std::uint32_t extend_crc32(std::uint32_t crc, const void* data, std::size_t size) {
  if (size == 0) {
    return crc;  // a null pointer, as empty tensors have, would be a wish to begin anew
  }
  return ::libdeflate_crc32(crc, data, size);
}

FileDigest digest_of(const fs::path& path, std::optional<std::uint64_t> expected) {
  const std::string fault = unlike_a_file(path);
  KF_CHECK(fault.empty(), Code::checkpoint, "cannot read {}: {}", path, fault);
  const std::uintmax_t size = fs::file_size(path);
  if (expected && size != *expected) {
    return {size, 0};
  }
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  KF_CHECK(fd >= 0, Code::checkpoint, "cannot read {}: {}", path, std::strerror(errno));
  FileDigest digest;
  std::string buffer(1 << 20, '\0');
  for (;;) {
    const ssize_t got = ::read(fd, buffer.data(), buffer.size());
    if (got < 0 && errno == EINTR) {
      continue;
    }
    if (got <= 0) {
      const int error = errno;
      ::close(fd);
      KF_CHECK(got == 0, Code::checkpoint, "cannot read {}: {}", path, std::strerror(error));
      return digest;
    }
    digest.bytes += static_cast<std::uint64_t>(got);
    digest.crc32 = extend_crc32(digest.crc32, buffer.data(), static_cast<std::size_t>(got));
  }
}

std::string hex32(std::uint32_t value) {
  std::array<char, 9> text{};
  std::snprintf(text.data(), text.size(), "%08x", value);
  return text.data();
}

std::uint32_t crc32_from(const std::string& text, const fs::path& path) {
  std::uint32_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value, 16);
  KF_CHECK(error == std::errc() && end == text.data() + text.size(), Code::checkpoint, "{}: the checksum '{}' is none", path, text);
  return value;
}

DurableFile::DurableFile(fs::path path) : path_(std::move(path)), temporary_(path_.string() + ".tmp" + std::to_string(::getpid())) {
  fd_ = ::open(temporary_.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
  if (fd_ < 0) {
    failed("create");
  }
}

DurableFile::~DurableFile() {
  if (fd_ >= 0) {
    ::close(fd_);
    ::unlink(temporary_.c_str());
  }
}

std::uint32_t DurableFile::write(const void* data, std::size_t size) {
  const char* at = static_cast<const char*>(data);
  const std::uint32_t crc = extend_crc32(0, data, size);
  digest_.crc32 = static_cast<std::uint32_t>(::crc32_combine(digest_.crc32, crc, static_cast<z_off_t>(size)));
  digest_.bytes += size;
  while (size > 0) {
    const ssize_t written = ::write(fd_, at, std::min<std::size_t>(size, std::size_t{1} << 30));  // one write() takes at most 2 GiB
    if (written < 0) {
      if (errno == EINTR) {
        continue;
      }
      failed("write");
    }
    at += written;
    size -= static_cast<std::size_t>(written);
  }
  return crc;
}

FileDigest DurableFile::commit() {
  if (!GroupSync::takes(path_) && ::fsync(fd_) != 0) {
    failed("write");
  }
  if (::rename(temporary_.c_str(), path_.c_str()) != 0) {
    failed("rename");
  }
  ::close(std::exchange(fd_, -1));
  try {
    sync_path(path_.has_parent_path() ? path_.parent_path() : fs::path("."));
  } catch (const Error& e) {
    throw Error(Code::checkpoint, e.what());
  }
  return digest_;
}

void DurableFile::failed(const char* doing) const { fail(Code::checkpoint, "cannot {} {}: {}", doing, path_, std::strerror(errno)); }

}  // namespace kf
