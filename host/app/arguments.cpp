#include "app/arguments.h"

#include <algorithm>

#include "core/error.h"

namespace kf {

TrainArguments parse_train_arguments(const std::vector<std::string>& args) {
  TrainArguments out;
  const auto dashes = std::find(args.begin(), args.end(), "--");
  for (auto word = args.begin(); word != dashes; ++word) {
    if (word->starts_with("--sweep-trial=")) {
      out.sweep_trial = word->substr(14);
    } else if (*word == "--help" || *word == "-h") {
      out.help = true;
    } else if (word->rfind("-", 0) != 0 && (word->ends_with(".toml") || word->ends_with(".lua"))) {
      KF_CHECK(out.file.empty(), Code::config, "two files were given, {} and {}; one job or script at a time", out.file, *word);
      out.file = *word;
    } else {
      out.overrides.push_back(*word);
    }
  }
  if (dashes != args.end()) {
    out.script.assign(dashes + 1, args.end());
  }
  if (!out.help) {
    KF_CHECK(!out.file.empty(), Code::config, "no job was given: name a .toml or .lua file");
    KF_CHECK(out.sweep_trial.empty() || out.file.ends_with(".lua"), Code::config,
             "--sweep-trial is what a sweep's script starts itself with; {} is none", out.file);
    KF_CHECK(out.script.empty() || out.file.ends_with(".lua"), Code::config, "'{}' after -- is meant for a script, but {} is none",
             join(out.script, " "), out.file);
  }
  return out;
}

}  // namespace kf
