#include "app/command/named_run.h"

#include <system_error>
#include <vector>

#include "core/error.h"
#include "report/read/run_list.h"
#include "report/terminal/printable.h"

namespace kf {

fs::path named_run(const std::string& word) {
  fs::path given = word;
  if (report::is_run(given)) {
    return given;
  }
  fs::path below = fs::path("runs") / given;
  if (given.is_relative() && report::is_run(below)) {
    return below;
  }
  std::vector<std::string> names;
  std::error_code ignored;
  const fs::path parent = given.has_parent_path() ? given.parent_path() : fs::path("runs");
  for (fs::directory_iterator entry(parent, ignored), end; !ignored && entry != end; entry.increment(ignored)) {
    if (report::is_run(entry->path())) {
      names.push_back(entry->path().filename().string());
    }
  }
  const bool is_name = given.has_filename() && given != "." && given != "..";
  const std::string near = is_name ? nearest(given.filename().string(), names) : "";
  fail(Code::config, "{} is no folder of a run: it has neither run.json nor job.toml with rows{}; `kf-host runs` lists those in runs",
       word.empty() ? "\"\"" : report::printable(word),
       near.empty() ? "" : "; did you mean " + report::printable((parent / near).string()) + "?");
}

}  // namespace kf
