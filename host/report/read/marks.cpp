// What a good run has none of, from its record, its incidents, its log and its rows.

#include <algorithm>
#include <charconv>
#include <cmath>
#include <map>
#include <string_view>
#include <system_error>

#include "core/error.h"
#include "report/read/json_values.h"
#include "report/read/line_file.h"
#include "report/read/run_record.h"

namespace kf::report {
namespace {

using Kind = Mark::Kind;
/// One of a kind a step: a step that is run again after a restart has its mark again.
using Marks = std::map<std::pair<std::int64_t, Kind>, Mark>;

void add(Marks& marks, Mark mark) {
  const std::pair key{mark.step, mark.kind};
  marks[key] = std::move(mark);
}

void add_starts(Marks& marks, const fs::path& run) {
  Record record;
  try {
    record = read_record(run);
  } catch (const Error&) {
    return;
  }
  for (std::size_t i = 0; i < record.starts.size(); ++i) {
    const Start& start = record.starts[i];
    if (i > 0) {
      add(marks, {Kind::restart, start.step, start.time, format("started again on {}", start.host)});
    }
    if (start.status == "failed") {
      add(marks, {Kind::failed, start.steps.value_or(start.step), start.end, start.error});
    } else if (start.end.empty() && i + 1 < record.starts.size()) {
      add(marks, {Kind::killed, record.starts[i + 1].step, start.time, "the process that began then never said how it ended"});
    }
  }
}

/// The number behind `prefix` in a folder's name.
std::optional<std::int64_t> numbered(std::string_view name, std::string_view prefix) {
  std::int64_t number = 0;
  const char* const end = name.data() + name.size();
  if (!name.starts_with(prefix)) {
    return std::nullopt;
  }
  const auto [rest, fault] = std::from_chars(name.data() + prefix.size(), end, number);
  return fault == std::errc() && rest == end ? std::optional(number) : std::nullopt;
}

void add_incidents(Marks& marks, const fs::path& run) {
  std::error_code error;
  for (fs::directory_iterator entry(run / "incidents", error), end; !error && entry != end; entry.increment(error)) {
    const std::string name = entry->path().filename().string();
    if (const std::optional<std::int64_t> stall = numbered(name, "stall_step_")) {
      add(marks, {Kind::stalled, *stall, "", "nothing moved for run.stall_timeout_sec", entry->path()});
    } else if (const std::optional<std::int64_t> step = numbered(name, "step_")) {
      std::string why = "loss or gradient was not finite";
      try {
        why = text_at(read_object(entry->path() / "incident.json"), "why");
      } catch (const Error&) {
      }
      add(marks, {Kind::not_finite, *step, "", why, entry->path()});
    }
  }
}

/// "2026-11-28 21:47:03.123 warning step 31: no update, loss is nan", as train/loop writes them.
void add_log_line(Marks& marks, std::string_view line) {
  constexpr std::string_view kStep = " warning step ", kNoUpdate = ": no update, ", kRolledBack = ": rolled back to ";
  const std::size_t at = line.find(kStep);
  if (at > 30) {  // or nowhere: npos
    return;
  }
  std::int64_t step = 0;
  const auto [rest, fault] = std::from_chars(line.data() + at + kStep.size(), line.data() + line.size(), step);
  const std::string_view text(rest, static_cast<std::size_t>(line.data() + line.size() - rest));
  if (fault != std::errc()) {
    return;
  }
  if (text.starts_with(kNoUpdate)) {
    add(marks, {Kind::skipped, step, "", std::string(text.substr(kNoUpdate.size()))});
  } else if (text.starts_with(kRolledBack)) {
    add(marks, {Kind::rolled_back, step, "", "back to " + std::string(text.substr(kRolledBack.size()))});
  }
}

void add_log(Marks& marks, const fs::path& run) {
  LineFile log(run / "log.txt");
  try {
    log.look();
    for (std::string_view lines = log.next(); !lines.empty(); lines = log.next()) {
      for (std::size_t at = 0; at < lines.size();) {
        const std::size_t end = lines.find('\n', at);
        add_log_line(marks, lines.substr(at, end - at));
        at = end + 1;
      }
    }
  } catch (const Error&) {
    return;
  }
}

/// Where the log tells of none, the counter of the rows does.
void add_skips(Marks& marks, const Columns& steps) {
  const Column* const skipped = steps.find("skipped");
  const bool told = std::any_of(marks.begin(), marks.end(), [](const auto& mark) { return mark.first.second == Kind::skipped; });
  if (told || skipped == nullptr) {
    return;
  }
  double before = 0;
  for (std::size_t row = 0; row < steps.rows(); ++row) {
    if (const double count = skipped->values[row]; !is_gap(count)) {
      if (count > before) {
        add(marks, {Kind::skipped, steps.steps[row], "", format("{} since the row before", static_cast<std::int64_t>(count - before))});
      }
      before = count;
    }
  }
}

}  // namespace

const char* to_word(Mark::Kind kind) {
  constexpr const char* kWords[] = {"restart", "failed", "killed", "skipped", "not finite", "rolled back", "stalled"};
  return kWords[static_cast<std::size_t>(kind)];
}

std::vector<Mark> marks_of(const fs::path& run, const Columns& steps) {
  Marks marks;
  add_starts(marks, run);
  add_incidents(marks, run);
  add_log(marks, run);
  add_skips(marks, steps);
  std::vector<Mark> out;
  out.reserve(marks.size());
  for (auto& [key, mark] : marks) {
    out.push_back(std::move(mark));
  }
  return out;
}

}  // namespace kf::report
