#include <ATen/Parallel.h>

#include <algorithm>
#include <array>
#include <iostream>
#include <limits>
#include <optional>
#include <system_error>

#include "app/command/commands.h"
#include "app/command/local_ranks.h"
#include "app/command/named_run.h"
#include "app/command/reproduced_run.h"
#include "app/help/usage.h"
#include "app/line/option_list.h"
#include "core/error.h"
#include "core/log.h"
#include "core/plain_file.h"
#include "core/text.h"
#include "data/documents/data_record.h"
#include "report/read/json_values.h"
#include "report/read/row_difference.h"
#include "report/read/run_list.h"
#include "report/terminal/printable.h"
#include "run/invocation.h"

namespace kf {
namespace {

using report::printable;

constexpr double kMostSteps = 1e15;
constexpr std::int64_t kAll = std::numeric_limits<std::int64_t>::max();
/// What is compared, in this order at one step.
const std::vector<std::string> kMetrics{"loss", "ce", "grad_norm", "lr", "eval.loss"};

std::int64_t ranks_of(const report::Start& start) { return report::integer_at(start.all, "ranks").value_or(1); }

/// What the run had that this process has not, one line each; what no number hangs on (the name of the machine) is left out.
std::vector<std::string> differences(const report::Start& then, const report::Start& now) {
  std::vector<std::string> out;
  for (const char* key : {"version", "commit", "torch", "processor", "instructions", "threads", "device", "ranks"}) {
    const config::Node* const before = then.all.find(key);
    const config::Node* const after = now.all.find(key);
    if (before != nullptr && after != nullptr && !(*before == *after)) {
      out.push_back(format("{} was {} and is {}", key, config::to_text(*before), config::to_text(*after)));
    }
  }
  return out;
}

std::string text_of(const fs::path& file) { return path_exists(file) ? read_regular_file(file, report::kMostJson) : std::string(); }

/// Says in what this run is another one than `then`, before its first step.
void tell_differences(const fs::path& run, const report::Start& then, const fs::path& dir) {
  const report::Start now = report::read_record(dir).starts.back();
  std::vector<std::string> found = differences(then, now);
  const std::string before = text_of(run / "data.fingerprint");
  const DataChanges data = before.empty() ? DataChanges() : data_changes(before, text_of(dir / "data.fingerprint"), "the run");
  for (const std::string& change : {data.training, data.evaluation}) {
    if (!change.empty()) {
      found.push_back(change);
    }
  }
  if (before.empty()) {
    found.emplace_back("which data the run read is not known: its folder has no data.fingerprint, as runs of earlier programs have none");
  }
  for (const std::string& line : found) {
    log::warn("{}", printable(line));
  }
  if (found.empty()) {
    log::info("data, program and machine are as they were in {}", printable(run.string()));
  }
}

/// The whole number, so that a difference in the last bit is seen.
std::string number(double value) { return report::is_gap(value) ? "none" : to_text(value); }

/// Says whether the rows are the same; the exit status.
int compare(const Reproduction& how, std::int64_t until) {
  report::RowFile before(how.run / "metrics.jsonl"), now(how.to / "metrics.jsonl");
  before.read();
  now.read();
  const std::string was = printable(how.run.filename().string()), is = printable(how.to.filename().string());
  const report::RowComparison found = compare_rows(before, now, kMetrics, until);
  KF_CHECK(found.rows > 0, Code::other, "{} and {} have no row of the same step: nothing can be compared{}", was, is,
           before.steps().rows() == 0 ? " (the run kept no metrics.jsonl, see metrics.sinks)" : "");
  if (found.first) {
    std::cout << format("they part at step {}: {} was {} in {} and is {} in {}\n", found.first->step, found.first->metric,
                        number(found.first->a), was, number(found.first->b), is);
    return static_cast<int>(Code::other);
  }
  std::cout << format("equal to the bit: {} rows up to step {} ({})\n", found.rows, found.last_step, join(found.compared, ", "));
  return 0;
}

/// A folder that is not there yet.
fs::path new_folder(const fs::path& run, const OptionList& options) {
  if (options.has("--dir")) {
    KF_CHECK(!options.last("--dir").empty(), Code::config, "--dir: the name of a new folder must follow");
    fs::path given = fs::absolute(options.last("--dir")).lexically_normal();
    KF_CHECK(!path_exists(given) || fs::is_empty(given), Code::config, "--dir {}: something is there already; name a new folder", given);
    return given;
  }
  const fs::path name = run.string() + ".reproduced";
  return path_exists(name) ? free_name(name) : name;
}

/// Paths of the job count from where the run was started, where that is here.
void go_there(const report::Start& start) {
  std::error_code error;
  const fs::path here = fs::current_path(error);
  if (start.folder.empty() || start.folder == here || !fs::is_directory(start.folder, error)) {
    return;
  }
  fs::current_path(start.folder, error);
  KF_CHECK(!error, Code::config, "cannot go to {}, where the run was started: {}", printable(start.folder), error.message());
  log::info("paths count from {}, where the run was started", printable(start.folder));
}

/// Runs part after part; how the last one ended. An error that ended the run, too, is part of it.
std::optional<RunResult> run_parts(const Reproduction& how, const std::vector<RunPart>& parts, bool failed) {
  std::optional<RunResult> last;
  for (const RunPart& part : parts) {
    if (how.steps > 0 && part.first >= how.steps) {
      break;
    }
    try {
      last = run_again(how, part, &part == &parts.front());
    } catch (const Error& error) {
      if (!failed || &part != &parts.back()) {
        throw;
      }
      log::warn("the run failed, and so does this one: {}", error.what());
      return std::nullopt;
    }
    if (last->reason == "signal") {
      break;
    }
  }
  return last;
}

int reproduce(const report::Record& record, const OptionList& options, Reproduction how) {
  const std::vector<RunPart> parts = parts_of(how.run, record);
  const report::Start& start = record.starts[parts.front().start - 1];
  if (const config::Node* const products = start.all.find("products")) {
    how.products = *products;
  }
  if (options.has("--steps")) {
    how.steps = option_number<std::int64_t>("--steps", options.last("--steps"), 1, kMostSteps);
  }
  for (const RunPart& part : parts) {
    KF_CHECK(path_exists(part.job), Code::other, "{} is not there: the folder of a run has its job", part.job);
    if (how.launch.leads() && parts.size() > 1) {
      log::info("steps behind {}{}: settings of start {}", part.first, part.end > 0 ? format(" up to {}", part.end) : "", part.start);
    }
  }
  if (const std::optional<std::int64_t> threads = report::integer_at(start.all, "threads"); threads && *threads > 0 && *threads <= 1024) {
    at::set_num_threads(static_cast<int>(*threads));
  }
  how.opened = [&](const fs::path& dir) { tell_differences(how.run, start, dir); };
  go_there(start);
  const std::optional<RunResult> ended = run_parts(how, parts, record.starts.back().status == "failed");
  if (!how.launch.leads()) {
    return status_of_runs();
  }
  const int status = compare(how, how.steps > 0 ? how.steps : kAll);
  return ended && ended->reason == "signal" ? kStoppedStatus : status;
}

}  // namespace

int reproduce_command(const Arguments& args) {
  const OptionList options = parse_options(args, {"kf-host reproduce", {"--steps", "--dir"}, {}, true});
  KF_CHECK(options.words.size() == 1, Code::config, "which RUN?\n{}", usage::kReproduce);
  const fs::path word = options.words[0];
  KF_CHECK(!word.string().ends_with(".tar.zst") && !word.string().ends_with(".tar.gz"), Code::config,
           "{} is an archive: unpack it first (tar -xf), and name the folder", printable(word.string()));
  const fs::path run = fs::absolute(named_run(options.words[0])).lexically_normal();
  Reproduction how;
  how.run = run.has_filename() ? run : run.parent_path();
  const report::Record record = report::read_record(how.run);
  KF_CHECK(!record.starts.empty(), Code::other, "{} has no start in its run.json: there is nothing to run again", how.run);
  how.to = new_folder(how.run, options);
  how.name = record.name.empty() ? how.run.filename().string() : record.name;
  how.overrides = options.overrides;
  const std::int64_t ranks = ranks_of(record.starts.front());
  how.launch = Launch::from_environment();
  if (ranks > 1 && how.launch.world() == 1) {  // the same words, on each rank, with what was decided here
    std::vector<std::string> words{"reproduce", how.run.string(), "--dir=" + how.to.string()};
    if (options.has("--steps")) {
      words.push_back("--steps=" + options.last("--steps"));
    }
    words.insert(words.end(), options.overrides.begin(), options.overrides.end());
    return run_local_ranks({ranks}, words);
  }
  KF_CHECK(how.launch.world() == ranks, Code::config, "the run had {} ranks, and these are {}: start `kf-host reproduce` as one process",
           ranks, how.launch.world());
  if (ranks > 1) {
    be_a_rank(how.launch);
  }
  return reproduce(record, options, std::move(how));
}

}  // namespace kf
