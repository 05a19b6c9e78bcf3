#include "app/command/rank_process.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>

#include "core/error.h"

namespace kf {
namespace {

/// Both ends of a pipe; the child gets the second one alone.
struct Pipe {
  Descriptor read, write;
  Pipe() {
    int ends[2];
    KF_CHECK(::pipe2(ends, O_CLOEXEC) == 0, Code::other, "no pipe for the output of a rank: {}", std::strerror(errno));
    read = Descriptor(ends[0]);
    write = Descriptor(ends[1]);
    KF_CHECK(::fcntl(ends[0], F_SETFL, O_NONBLOCK) == 0, Code::other, "the pipe for the output of a rank: {}", std::strerror(errno));
  }
};

constexpr int kPipeful = 32;       // reads that empty a pipe
constexpr std::size_t kKept = 40;  // lines

}  // namespace

RankProcess::RankProcess(std::int64_t rank, const std::vector<std::string>& argv, const std::map<std::string, std::string>& environment,
                         Output output, const char* what)
    : rank_(rank), output_(output), what_(what) {
  if (output == Output::own) {
    child_ = std::make_unique<Child>(argv, environment, ChildOutput{});
    return;
  }
  Pipe pipe;
  child_ = std::make_unique<Child>(argv, environment, ChildOutput{{}, pipe.write.get()});
  read_ = std::move(pipe.read);
}

bool RankProcess::forward() {
  char bytes[4096];
  const ssize_t got = ::read(read_.get(), bytes, sizeof bytes);
  if (got < 0 && (errno == EINTR || errno == EAGAIN)) {
    return false;
  }
  text_.append(bytes, got > 0 ? static_cast<std::size_t>(got) : 0);
  for (std::size_t end = text_.find('\n'); end != std::string::npos; end = text_.find('\n')) {
    take(text_.substr(0, end));
    text_.erase(0, end + 1);
  }
  if (got <= 0) {
    close();
  }
  return got > 0;
}

void RankProcess::finish() {
  for (int reads = 0; reads < kPipeful && output() >= 0 && forward(); ++reads) {
  }
  if (output() >= 0) {
    close();
  }
}

void RankProcess::tell() {
  for (const std::string& line : kept_) {
    print(line);
  }
  kept_.clear();
}

void RankProcess::close() {
  if (!text_.empty()) {
    take(text_);
    text_.clear();
  }
  const Descriptor ended = std::move(read_);
}

void RankProcess::take(const std::string& line) {
  last_ = line.empty() ? last_ : line;
  if (output_ == Output::prefixed) {
    if (!is_told(line)) {
      print(line);
    }
    return;
  }
  kept_.push_back(line);
  if (kept_.size() > kKept) {
    kept_.pop_front();
  }
}

/// "kf-host: rank 2 cannot reach ..." where "kf-host: rank 1 cannot reach ..." has been shown, and what is indented below it.
bool RankProcess::is_told(const std::string& line) {
  const std::string who = format("kf-host: {} {} ", what_, rank_);
  if (said_ != nullptr && line.starts_with(who)) {
    passes_over_ = !said_->insert(line.substr(who.size())).second;
  } else if (!line.starts_with(' ')) {
    passes_over_ = false;
  }
  return passes_over_;
}

void RankProcess::print(const std::string& line) const {
  std::fprintf(stderr, "[%s %lld] %s\n", what_, static_cast<long long>(rank_), line.c_str());
}

}  // namespace kf
