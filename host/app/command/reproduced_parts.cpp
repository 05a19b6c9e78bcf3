#include "app/command/reproduced_parts.h"

#include <algorithm>
#include <string>
#include <utility>

#include "config/plan/resume_class.h"
#include "config/schema/schema.h"
#include "core/error.h"
#include "report/read/json_values.h"
#include "report/read/settings.h"
#include "run/run_record.h"

namespace kf {
namespace {

/// A setting's class; that of a field of a part ("scheduler.half.factor") is the part's.
config::ResumeClass class_of(const std::string& key) {
  const std::size_t dot = key.find('.');
  const std::size_t second = dot == std::string::npos ? dot : key.find('.', dot + 1);
  return config::resume_class(config::find_row(key) != nullptr ? key : key.substr(0, second));
}

/// The settings that can move a number.
std::vector<report::Setting> telling(const fs::path& job) {
  std::vector<report::Setting> out = report::settings_in(job);
  std::erase_if(out, [](const report::Setting& setting) {
    return setting.first.starts_with("run.") || class_of(setting.first) == config::ResumeClass::free;
  });
  return out;
}

bool same_job(const fs::path& a, const fs::path& b) { return a == b || report::compare_settings({telling(a), telling(b)}).empty(); }

}  // namespace

std::vector<RunPart> parts_of(const fs::path& run, const report::Record& record) {
  KF_CHECK(!record.starts.empty(), Code::other, "{} has no start in its run.json: there is nothing to run again", run);
  std::vector<RunPart> out;
  for (std::size_t i = 0; i < record.starts.size(); ++i) {
    const report::Start& start = record.starts[i];
    while (!out.empty() && out.back().first >= start.step) {
      out.pop_back();
    }
    RunPart part{recorded_job(run, i + 1, record.starts.size()), i + 1, start.step, 0, report::integer_at(start.all, "call").value_or(0)};
    if (out.empty() || !same_job(out.back().job, part.job)) {
      if (!out.empty()) {
        out.back().end = start.step;
      }
      out.push_back(std::move(part));
    } else {
      out.back().end = 0;
    }
  }
  return out;
}

}  // namespace kf
