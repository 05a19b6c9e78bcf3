#include <poll.h>
#include <sys/inotify.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <deque>
#include <functional>
#include <iostream>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "app/command/commands.h"
#include "app/command/named_run.h"
#include "app/help/usage.h"
#include "app/line/option_list.h"
#include "config/plan/plan.h"
#include "core/descriptor.h"
#include "core/error.h"
#include "metrics/console.h"
#include "metrics/jsonl.h"
#include "report/read/json_values.h"
#include "report/read/line_file.h"
#include "report/read/run_list.h"
#include "report/read/run_record.h"
#include "report/terminal/printable.h"

namespace kf {
namespace {

using report::RunState;
using MetricRow = std::variant<StepRow, EvalResult>;

constexpr int kLookMs = 1000;  // disks of other machines tell nothing of what is written there
constexpr double kMostRows = 1e9;
using Monotonic = std::chrono::steady_clock;
constexpr std::chrono::milliseconds kHeld{700};  // a row waits so long for an evaluation of its step

std::int64_t step_of(const MetricRow& row) {
  return std::visit([](const auto& one) { return one.step; }, row);
}

/// Wakes when something is written in a folder; a second later in any case.
class FolderWatch {
 public:
  explicit FolderWatch(const fs::path& folder) : events_(::inotify_init1(IN_CLOEXEC | IN_NONBLOCK)) {
    if (events_.get() >= 0) {
      ::inotify_add_watch(events_.get(), folder.c_str(), IN_MODIFY | IN_CREATE | IN_MOVED_TO | IN_CLOSE_WRITE);
    }
  }
  void wait() const {
    pollfd event{events_.get(), POLLIN, 0};
    if (::poll(&event, 1, kLookMs) > 0) {
      char buffer[4096];
      while (::read(events_.get(), buffer, sizeof buffer) > 0) {
      }
    }
  }

 private:
  Descriptor events_;
};

/// Prints rows as the run itself prints them.
class Tail {
 public:
  Tail(const fs::path& run, std::size_t first) : run_(run), first_(first), file_(run / "metrics.jsonl"), console_(std::cout, options()) {}

  /// Prints what has come; whether anything has.
  bool look() {
    if (file_.look() == report::News::again) {
      line_ = 0;
    }
    std::deque<MetricRow> rows;
    for (std::string_view lines = file_.next(); !lines.empty(); lines = file_.next()) {
      for (std::size_t at = 0; at < lines.size();) {
        const std::size_t end = lines.find('\n', at);
        take(rows, lines.substr(at, end - at));
        at = end + 1;
      }
    }
    for (const MetricRow& row : rows) {
      print(row);
    }
    looked_ = true;
    return !rows.empty();
  }
  /// Nothing more comes for the last step, as far as one can tell: its row is held back no longer.
  void flush() {
    if (last_) {
      console_.step_over(*last_);
    }
  }

 private:
  ConsoleOptions options() {
    ConsoleOptions out = stdout_options();
    out.bar = false;
    out.clock = [this] { return now_; };
    return out;
  }

  /// A file that was written anew, as by a run that goes on from an earlier step, begins with lines that are known.
  void take(std::deque<MetricRow>& rows, std::string_view line) {
    const std::size_t hash = std::hash<std::string_view>()(line);
    if (line_ < known_.size() && known_[line_] == hash) {
      ++line_;
      return;
    }
    known_.resize(line_++);
    known_.push_back(hash);
    if (std::optional<MetricRow> row = parse_row(std::string(line), file_.path())) {
      rows.push_back(std::move(*row));
      if (!looked_) {
        keep_first(rows);
      }
    }
  }

  /// The last rows of steps, as many as are asked for, with the evaluations behind them.
  void keep_first(std::deque<MetricRow>& rows) {
    const auto is_step = [](const MetricRow& row) { return std::holds_alternative<StepRow>(row); };
    kept_ += is_step(rows.back()) ? 1 : 0;
    while (!rows.empty() && (kept_ > first_ || !is_step(rows.front()))) {
      kept_ -= is_step(rows.front()) ? 1 : 0;
      rows.pop_front();
    }
  }

  void print(const MetricRow& row) {
    const auto* const step = std::get_if<StepRow>(&row);
    if (last_ && *last_ != step_of(row)) {
      flush();
    }
    if (last_ && step != nullptr && step->step <= *last_) {
      std::cout << "the run went back to step " << step->step - 1 << '\n';
    }
    if (step != nullptr) {
      begin(*step);
      now_ = step->time;
      console_.row(*step);
    } else {
      console_.eval(std::get<EvalResult>(row));
    }
    last_ = step_of(row);
  }

  /// Before the first row: how many steps there are, and since when this process of the run trains, for the time that is left.
  void begin(const StepRow& row) {
    if (std::exchange(begun_, true)) {
      return;
    }
    const config::Config config;
    config::Plan plan;
    plan.max_steps = report::summary_of(run_).max_steps.value_or(row.step);
    std::int64_t from = 0;
    now_ = row.time;
    try {
      const report::Record record = report::read_record(run_);
      if (!record.starts.empty()) {
        from = record.starts.back().step;
        now_ = report::seconds_of(record.starts.back().time);
      }
    } catch (const Error&) {
      from = row.step;  // then it is not known
    }
    console_.begin({config, plan, "", "", 0, from});
  }

  fs::path run_;
  std::size_t first_;     // rows of steps that are printed at first
  std::size_t kept_ = 0;  // of them, so far
  report::LineFile file_;
  std::vector<std::size_t> known_;  // digests of the lines that were read
  std::size_t line_ = 0;            // the next one
  double now_ = 0;                  // when the last row was made, by the clock of its machine
  ConsoleSink console_;
  bool looked_ = false, begun_ = false;
  std::optional<std::int64_t> last_;  // step of the last row
};

/// How it ended, in a line; of one that goes on "".
std::string ending(const report::RunSummary& run) {
  const std::string step = run.step ? format(" at step {}", *run.step) : "";
  const std::string why = run.reason.empty() ? "" : ": " + report::printable(run.reason);
  return format("{}: {}{}{}", report::printable(run.folder.string()), to_word(run.state), step, why);
}

/// Of a run of another machine only its record tells.
bool goes_on(RunState state) { return state == RunState::running || state == RunState::away; }

}  // namespace

int tail_command(const Arguments& args) {
  const OptionList options = parse_options(args, {"kf-host tail", {"--rows"}, {}, false});
  KF_CHECK(options.words.size() == 1, Code::config, "which RUN?\n{}", usage::kTail);
  const fs::path run = named_run(options.words[0]);
  const std::size_t first = options.has("--rows") ? option_number<std::size_t>("--rows", options.last("--rows"), 0, kMostRows) : 10;
  const FolderWatch watch(run);  // before the first look, so that nothing falls between
  Tail tail(run, first);
  Monotonic::time_point news = Monotonic::now();
  for (;;) {
    const report::RunSummary now = report::summary_of(run);  // before its rows: what it wrote until its end is read then
    if (tail.look()) {
      news = Monotonic::now();
    }
    if (!goes_on(now.state)) {
      tail.flush();
      std::cout << ending(now) << std::endl;
      return now.state == RunState::finished || now.state == RunState::stopped ? 0 : static_cast<int>(Code::other);
    }
    if (!std::cout) {  // its reader has gone
      return 0;
    }
    watch.wait();
    if (Monotonic::now() - news > kHeld) {
      tail.flush();
    }
  }
}

}  // namespace kf
