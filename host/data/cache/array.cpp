#include "data/cache/array.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "core/error.h"

namespace kf::cache {
namespace {

constexpr std::size_t kBuffer = 256 << 10;

}  // namespace

std::size_t width_of(const std::string& descr) {
  KF_CHECK(descr.size() == 3 && descr[2] >= '1' && descr[2] <= '8', Code::data, "a cache holds no values of type {}", kf::quoted(descr));
  return static_cast<std::size_t>(descr[2] - '0');
}

std::string npy_header(const std::string& descr, std::int64_t count) {
  std::string out("\x93NUMPY\x01\x00", 8);
  constexpr std::size_t length = kHeaderBytes - 10;
  out += static_cast<char>(length);
  out += '\0';
  out += format("{'descr': '{}', 'fortran_order': False, 'shape': ({},), }", descr, count);
  out.resize(kHeaderBytes - 1, ' ');
  return out + '\n';
}

ArrayWriter::ArrayWriter(fs::path path, std::string descr) : path_(std::move(path)), descr_(std::move(descr)), width_(width_of(descr_)) {
  fd_ = ::open(path_.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
  if (fd_ < 0) {
    failed();
  }
  buffer_ = npy_header(descr_, 0);
}

ArrayWriter::~ArrayWriter() {
  if (fd_ >= 0) {
    ::close(fd_);
    ::unlink(path_.c_str());
  }
}

void ArrayWriter::append(const void* values, std::size_t count) {
  const std::size_t size = count * width_;
  hash_.add(values, size);
  count_ += static_cast<std::int64_t>(count);
  buffer_.append(static_cast<const char*>(values), size);
  if (buffer_.size() >= kBuffer) {
    flush();
  }
}

ArrayInfo ArrayWriter::finish() {
  flush();
  const std::string header = npy_header(descr_, count_);
  if (::pwrite(fd_, header.data(), header.size(), 0) != static_cast<ssize_t>(header.size()) || ::fsync(fd_) != 0) {
    failed();
  }
  ::close(std::exchange(fd_, -1));
  return {descr_, count_, hash_.hex()};
}

void ArrayWriter::flush() {
  put(buffer_.data(), buffer_.size());
  buffer_.clear();
}

void ArrayWriter::put(const char* data, std::size_t size) {
  while (size > 0) {
    const ssize_t written = ::write(fd_, data, size);
    if (written < 0 && errno != EINTR) {
      failed();
    }
    const std::size_t done = written < 0 ? 0 : static_cast<std::size_t>(written);
    data += done;
    size -= done;
  }
}

void ArrayWriter::failed() const {
  const std::string reason = std::strerror(errno);
  fail(Code::data,
       "cannot write {}: {}; finished parts of the cache are kept: make room and run again, or set data.cache_dir to another place", path_,
       reason);
}

MappedArray::MappedArray(const fs::path& path, ArrayInfo info) : file_(path), watch_(path), info_(std::move(info)) {
  const auto there = static_cast<std::int64_t>(file_.bytes().size());
  KF_CHECK(there == info_.bytes(), Code::data, "{} has {} bytes, and the cache says {}", path, there, info_.bytes());
  const std::string header = npy_header(info_.descr, info_.count);
  KF_CHECK(std::memcmp(file_.bytes().data(), header.data(), header.size()) == 0, Code::data, "{}: the header is not that of {} values {}",
           path, info_.count, info_.descr);
}

bool MappedArray::intact() const {
  ContentHash hash;
  hash.add(values(), file_.bytes().size() - kHeaderBytes);
  return hash.hex() == info_.hash;
}

}  // namespace kf::cache
