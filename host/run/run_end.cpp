#include "run/run_end.h"

#include <unistd.h>

#include <iostream>
#include <system_error>
#include <utility>

#include "core/log.h"
#include "core/log_keep.h"
#include "core/text.h"
#include "core/wrap.h"
#include "run/invocation.h"

namespace kf {
namespace {

/// A line on standard output, folded to the width of a terminal, and in the log.
void say(const std::string& line) {
  const std::size_t terminal = terminal_columns(STDOUT_FILENO);
  std::cout << wrapped(line, terminal > 0 ? terminal : std::string::npos, 2) << std::endl;
  log::keep(line);
}

std::string skipped_text(std::int64_t skipped) { return skipped == 0 ? "" : format(" ({} without an update)", grouped(skipped)); }

}  // namespace

void RunEnd::open(const fs::path& dir, const RunStart& start) {
  log::open_file(dir / "log.txt");
  std::error_code ignored;
  log::keep(format("start {}: {}, in {}, process {}", utc_now(), shell_line(invocation()), fs::current_path(ignored),
                   static_cast<std::int64_t>(::getpid())));
  logs_ = true;
  steps_ = start.step;
  record_.emplace(dir, start);
}

void RunEnd::open_log(const fs::path& dir, std::int64_t rank) {
  log::open_file(dir / format("log.rank-{}.txt", rank));
  log::keep(format("start {}: process {}", utc_now(), static_cast<std::int64_t>(::getpid())));
  logs_ = true;
}

void RunEnd::note(const std::string& key, config::Node value) {
  if (record_) {
    record_->add(key, std::move(value));
  }
}

void RunEnd::well(const RunResult& result) {
  if (record_) {
    record_->end(result.status, result.step);
  }
  close_log(result.status);
}

void RunEnd::failed(const std::string& message) {
  if (logs_) {
    log::keep(message, log::Level::error);
  }
  if (record_) {
    record_->end("failed", steps_, message);
  }
  close_log("failed");
}

void RunEnd::close_log(const std::string& status) {
  if (logs_) {
    log::keep(format("end {}: {}", utc_now(), status));
    log::close_file();
  }
}

void say_end(const RunResult& result, const RunRequest& request, bool leads) {
  const bool signal = result.status != "complete" && result.reason == "signal";
  if (signal) {
    note_stopped_by_signal();
  }
  if (!leads) {
    return;
  }
  if (result.status == "complete") {
    say(format("training complete: {} steps{}, {} tokens in {}; {}", result.step, skipped_text(result.skipped), grouped(result.tokens),
               human_seconds(result.seconds), result.checkpoint));
    return;
  }
  const std::string again = !signal            ? ""
                            : request.of_sweep ? "; its sweep goes on with it"
                                               : "; `" + command_again() + "` goes on from there";
  say(format("stopped at step {}{}{}; saved {}{}", result.step, skipped_text(result.skipped),
             result.reason.empty() ? ""
             : signal              ? " by a signal"
                                   : ": " + result.reason,
             result.checkpoint, again));
}

}  // namespace kf
