#include <iostream>

#include "app/command/commands.h"
#include "app/command/named_run.h"
#include "app/help/usage.h"
#include "app/line/option_list.h"
#include "core/error.h"
#include "report/bundle/bundle.h"
#include "report/read/lock_look.h"
#include "report/terminal/printable.h"

namespace kf {

int bundle_command(const Arguments& args) {
  const OptionList options = parse_options(args, {"kf-host bundle", {}, {}, false});
  KF_CHECK(options.words.size() == 1 || options.words.size() == 2, Code::config, "which RUN?\n{}", usage::kBundle);
  const fs::path named = fs::absolute(named_run(options.words[0])).lexically_normal();
  const fs::path run = named.has_filename() ? named : named.parent_path();
  const fs::path archive = options.words.size() == 2 ? fs::path(options.words[1]) : fs::path(run.filename().string() + ".tar.zst");
  std::error_code error;
  KF_CHECK(!archive.has_parent_path() || fs::is_directory(archive.parent_path(), error), Code::config,
           "{} cannot be written: {} is no folder", report::printable(archive.string()), report::printable(archive.parent_path().string()));
  if (report::lock_of(run) == report::Lock::held) {
    std::cerr << report::printable(run.string()) << " is running: the archive has it as far as it is now\n";
  }
  const report::Bundled made = report::bundle(run, archive);
  std::cout << format("{}: {} files of {}, {}\n", report::printable(archive.string()), made.files,
                      report::printable(run.filename().string()), human_bytes(static_cast<double>(made.bytes)));
  return 0;
}

}  // namespace kf
