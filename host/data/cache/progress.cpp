#include "data/cache/progress.h"

#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <string_view>

#include "core/log.h"
#include "core/text.h"

namespace kf::cache {
namespace {

using Seconds = std::chrono::duration<double>;

constexpr Seconds kRedraw{0.1};
constexpr Seconds kPlainLine{5.0};

/// The one whose bar log lines step around; builds do not overlap in a process.
std::atomic<Progress*> active{nullptr};

bool draws() {
  const char* const term = std::getenv("TERM");
  return ::isatty(STDERR_FILENO) == 1 && term != nullptr && std::string_view(term) != "dumb";
}

}  // namespace

Progress::Progress(std::int64_t total) : total_(std::max<std::int64_t>(total, 1)), terminal_(draws()) {
  if (terminal_) {
    active = this;
    log::set_terminal_guard(before_log, nullptr);
  }
}

Progress::~Progress() {
  if (terminal_) {
    log::set_terminal_guard(nullptr, nullptr);
    active = nullptr;
    erase();
  }
}

double Progress::seconds() const { return Seconds(std::chrono::steady_clock::now() - begin_).count(); }

void Progress::show() {
  const auto now = std::chrono::steady_clock::now();
  if (now - shown_ < (terminal_ ? kRedraw : kPlainLine)) {
    return;
  }
  shown_ = now;
  if (terminal_) {
    const std::string text = "\r\x1b[K" + line();
    std::fwrite(text.data(), 1, text.size(), stderr);
    std::fflush(stderr);
    drawn_ = true;
  } else {
    log::info("{}", line());
  }
}

std::string Progress::line() const {
  constexpr int kBar = 24;
  const std::int64_t done = std::min(bytes_.load(), total_);
  const double share = static_cast<double>(done) / static_cast<double>(total_);
  const double rate = static_cast<double>(bytes_.load() - skipped_.load()) / std::max(seconds(), 1e-3);
  const auto filled = static_cast<std::size_t>(share * kBar);
  const std::string bar = "[" + std::string(filled, '=') + ">" + std::string(kBar - filled, ' ') + "] ";
  const std::string eta = rate > 0 ? human_seconds(static_cast<double>(total_ - done) / rate) : "?";
  return format("tokenizing {}{} %  {} of {}  {}/s  {} tokens  eta {}", terminal_ ? bar : "", static_cast<int>(100 * share),
                human_bytes(static_cast<double>(done)), human_bytes(static_cast<double>(total_)), human_bytes(rate),
                grouped(tokens_.load()), eta);
}

void Progress::erase() {
  if (drawn_) {
    std::fputs("\r\x1b[K", stderr);
    std::fflush(stderr);
    drawn_ = false;
  }
}

void Progress::before_log() {
  if (Progress* const progress = active.load()) {
    progress->erase();
  }
}

}  // namespace kf::cache
