#include "core/progress.h"

#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <string_view>
#include <utility>

#include "core/log.h"
#include "core/text.h"

namespace kf {
namespace {

using Seconds = std::chrono::duration<double>;

constexpr Seconds kRedraw{0.1};
constexpr Seconds kPlainLine{5.0};

/// The one that is shown, whose bar log lines step around.
std::atomic<Progress*> active{nullptr};

bool draws() {
  const char* const term = std::getenv("TERM");
  return ::isatty(STDERR_FILENO) == 1 && term != nullptr && std::string_view(term) != "dumb";
}

}  // namespace

Progress::Progress(std::string doing, std::int64_t total, std::string counts, Of of)
    : doing_(std::move(doing)), total_(std::max<std::int64_t>(total, 1)), counts_(std::move(counts)), of_(of), terminal_(draws()) {
  Progress* none = nullptr;
  shows_ = active.compare_exchange_strong(none, this);
  if (shows_ && terminal_) {
    log::set_terminal_guard(before_log, nullptr);
  }
}

Progress::~Progress() {
  if (shows_) {
    if (terminal_) {
      log::set_terminal_guard(nullptr, nullptr);
      erase();
    }
    active = nullptr;
  }
}

double Progress::seconds() const { return Seconds(std::chrono::steady_clock::now() - begin_).count(); }

void Progress::show() {
  const auto now = std::chrono::steady_clock::now();
  if (!shows_ || now - shown_ < (terminal_ ? kRedraw : kPlainLine)) {
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
  const std::string counted = counts_.empty() ? "" : format("{} {}  ", grouped(counted_.load()), counts_);
  const bool bytes = of_ == Of::bytes;
  const std::string amounts =
      bytes ? format("{} of {}  {}/s", human_bytes(static_cast<double>(done)), human_bytes(static_cast<double>(total_)), human_bytes(rate))
            : format("{} of {}", grouped(done), grouped(total_));
  return format("{} {}{} %  {}  {}eta {}", doing_, terminal_ ? bar : "", static_cast<int>(100 * share), amounts, counted, eta);
}

void Progress::erase() {
  if (drawn_.exchange(false)) {
    std::fputs("\r\x1b[K", stderr);
    std::fflush(stderr);
  }
}

void Progress::before_log() {
  if (Progress* const progress = active.load()) {
    progress->erase();
  }
}

}  // namespace kf
