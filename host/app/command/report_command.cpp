#include <algorithm>
#include <fstream>
#include <iostream>

#include "app/command/commands.h"
#include "app/command/named_run.h"
#include "app/help/usage.h"
#include "app/line/option_list.h"
#include "core/error.h"
#include "core/output_file.h"
#include "core/text.h"
#include "report/page/report.h"
#include "report/terminal/printable.h"

namespace kf {
namespace {

constexpr const char* kFile = "report.html";

/// A folder as it is, or the name of a run in runs/.
std::string folder_of(const std::string& word) {
  std::error_code ignored;
  return fs::is_directory(word, ignored) ? word : named_run(word).string();
}

/// A file that is there already is written over only where it is a page itself, or empty: a run's own record is not.
void check_target(const std::string& file) {
  std::error_code ignored;
  KF_CHECK(!file.empty(), Code::config, "-o: the name of a file must follow");
  KF_CHECK(!fs::is_directory(file, ignored), Code::config, "-o: {} is a folder; name a file in it, such as {}", report::printable(file),
           report::printable((fs::path(file) / kFile).string()));
  if (!fs::is_regular_file(file, ignored) || fs::file_size(file, ignored) == 0) {
    return;
  }
  constexpr std::string_view kPage = "<!doctype html";
  std::string begin(kPage.size(), '\0');
  std::ifstream(file, std::ios::binary).read(begin.data(), static_cast<std::streamsize>(begin.size()));
  KF_CHECK(lower(begin) == kPage, Code::config, "-o: {} is there already and is no page of HTML, so it is left as it is; name another file",
           report::printable(file));
}

}  // namespace

int report_command(const Arguments& args) {
  Arguments given = args;
  std::replace(given.begin(), given.end(), std::string("-o"), std::string("--out"));
  const OptionList options = parse_options(given, {"kf-host report", {"--out"}, {}});
  KF_CHECK(!options.words.empty(), Code::config, "{}", usage::kReport);
  std::vector<std::string> words;
  for (const std::string& word : options.words) {
    words.push_back(folder_of(word));
  }
  const std::string file = options.has("--out") ? options.last("--out") : kFile;
  if (file != "-") {
    check_target(file);
  }
  const report::ReportPlan plan = report::plan_report(words);
  const std::string html = report::report_html(plan);
  if (file == "-") {
    std::cout << html;
    return 0;
  }
  write_output(file, html);
  for (const std::string& problem : plan.problems) {
    std::cerr << report::printable(problem) << '\n';
  }
  std::cout << report::printable(file) << ": " << plan.runs.size() << (plan.runs.size() == 1 ? " run" : " runs");
  if (!plan.sweeps.empty()) {
    std::cout << ", " << plan.sweeps.size() << (plan.sweeps.size() == 1 ? " sweep" : " sweeps");
  }
  std::cout << ", " << human_bytes(static_cast<double>(html.size())) << "; a browser shows it, without a network\n";
  return 0;
}

}  // namespace kf
