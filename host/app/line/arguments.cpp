#include "app/line/arguments.h"

#include <algorithm>

#include "config/load/cli.h"
#include "core/error.h"
#include "run/run_record.h"

namespace kf {

std::vector<std::string> take_script_arguments(std::vector<std::string>& args) {
  const auto dashes = std::find(args.begin(), args.end(), "--");
  std::vector<std::string> script(dashes == args.end() ? dashes : dashes + 1, args.end());
  args.erase(dashes, args.end());
  return script;
}

/// "--dryrun", "--dry_run", "--dry-run=true": no setting has a name like this, so that none would be offered.
static bool is_almost_dry_run(const std::string& word) {
  std::string name = word.substr(0, word.find('='));
  std::erase_if(name, [](char c) { return c == '-' || c == '_'; });
  return word.starts_with("--") && name == "dryrun";
}

TrainArguments parse_train_arguments(const std::vector<std::string>& args) {
  TrainArguments out;
  std::vector<std::string> words = args;
  out.script = take_script_arguments(words);
  words = config::join_values(words);
  for (const std::string& word : words) {
    if (word == "--dry-run") {
      out.dry_run = true;
    } else if (is_almost_dry_run(word)) {
      fail(Code::config, "there is no {}; did you mean --dry-run (without a value)?", word);
    } else if (word.starts_with("--sweep-trial=")) {
      out.sweep_trial = word.substr(14);
    } else if (word == "--help" || word == "-h") {
      out.help = true;
    } else if (word.rfind("-", 0) != 0 && (word.ends_with(".toml") || word.ends_with(".lua") || is_run_folder(word))) {
      KF_CHECK(out.file.empty(), Code::config, "two files were given, {} and {}; one job or script at a time", out.file, word);
      out.file = word;
    } else {
      out.overrides.push_back(word);
    }
  }
  if (!out.help) {
    KF_CHECK(!out.file.empty(), Code::config, "no job was given: name a .toml or .lua file");
    KF_CHECK(out.sweep_trial.empty() || out.file.ends_with(".lua"), Code::config,
             "--sweep-trial is what a sweep's script starts itself with; {} is none", out.file);
    KF_CHECK(out.script.empty() || out.file.ends_with(".lua") || is_run_folder(out.file), Code::config,
             "'{}' after -- is meant for a script, but {} is none", join(out.script, " "), out.file);
  }
  return out;
}

}  // namespace kf
