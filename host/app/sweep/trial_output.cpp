#include "app/sweep/trial_output.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <iostream>
#include <string_view>

#include "core/error.h"
#include "core/stop.h"

namespace kf {
namespace {

void flush_all() {
  std::cout.flush();
  std::cerr.flush();
  std::fflush(nullptr);
}

/// A second name of a standard stream, which no child inherits.
Descriptor second_name(int fd) { return Descriptor(::fcntl(fd, F_DUPFD_CLOEXEC, 3)); }

}  // namespace

TrialOutput::TrialOutput(const fs::path& file)
    : before_{second_name(STDIN_FILENO), second_name(STDOUT_FILENO), second_name(STDERR_FILENO)} {
  const Descriptor out(::open(file.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644));
  KF_CHECK(out.get() >= 0, Code::other, "cannot write {}: {}", file, std::strerror(errno));
  const Descriptor nothing(::open("/dev/null", O_RDONLY | O_CLOEXEC));
  KF_CHECK(nothing.get() >= 0, Code::other, "cannot read /dev/null: {}", std::strerror(errno));
  flush_all();
  ::dup2(nothing.get(), STDIN_FILENO);
  ::dup2(out.get(), STDOUT_FILENO);
  ::dup2(out.get(), STDERR_FILENO);
  StopSignals::tell(before_[STDERR_FILENO].get());
}

TrialOutput::~TrialOutput() {
  StopSignals::tell(STDERR_FILENO);
  flush_all();
  for (int fd = 0; fd < 3; ++fd) {
    const int earlier = before_[static_cast<std::size_t>(fd)].get();
    earlier >= 0 ? ::dup2(earlier, fd) : ::close(fd);  // it was closed when the program began
  }
}

FirstOutput::FirstOutput() : std::ostream(static_cast<std::streambuf*>(this)), out_(second_name(STDOUT_FILENO)) {}

int FirstOutput::overflow(int c) {
  using Traits = std::char_traits<char>;
  if (c != Traits::eof()) {
    text_ += static_cast<char>(c);
  }
  return Traits::not_eof(c);
}

std::streamsize FirstOutput::xsputn(const char* text, std::streamsize size) {
  text_.append(text, static_cast<std::size_t>(size));
  return size;
}

int FirstOutput::sync() {
  std::string_view rest = text_;
  while (!rest.empty()) {
    const ssize_t written = ::write(out_.get(), rest.data(), rest.size());
    if (written < 0 && errno == EINTR) {
      continue;
    }
    if (written < 0) {
      text_.clear();
      return -1;
    }
    rest.remove_prefix(static_cast<std::size_t>(written));
  }
  text_.clear();
  return 0;
}

}  // namespace kf
