#include "app/line/arguments.h"

#include <algorithm>

#include "config/load/cli.h"
#include "config/tree/literal.h"
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

/// Takes an option with a value, "--nproc N" or "--nproc=N", off `words`; nothing where it is not there. Throws Code::config for one
/// without a value, saying that it `needs` one.
static std::optional<std::string> take(std::string_view option, const char* needs, std::vector<std::string>& words) {
  const std::string with_value = std::string(option) + "=";
  const auto end = std::find(words.begin(), words.end(), "--");
  const auto at = std::find_if(words.begin(), end, [&](const std::string& word) { return word == option || word.starts_with(with_value); });
  if (at == end) {
    return std::nullopt;
  }
  const bool apart = *at == option;
  KF_CHECK(!apart || at + 1 != end, Code::config, "{} needs {}", option, needs);
  std::string text = apart ? *(at + 1) : at->substr(with_value.size());
  words.erase(at, at + (apart ? 2 : 1));
  return text;
}

/// Of an option whose value is a number.
struct NumberOption {
  std::string_view name;
  const char* what;
  const char* needs;
  std::int64_t least, most;
};
static constexpr std::string_view kProcesses = "--nproc", kRendezvous = "--rdzv", kOutput = "--rank-output";
static constexpr NumberOption kOfProcesses{kProcesses, "processes", "a number: of processes that train together on this machine", 1, 4096};
static constexpr NumberOption kNodes{"--nnodes", "machines", "a number: of machines that train together", 1, 65536};
static constexpr NumberOption kNode{"--node-rank", "machines before this one", "a number: which machine this is, from 0", 0, 65535};
static constexpr NumberOption kRestarts{"--max-restarts", "restarts", "a number: of restarts after a crash", 0, 1'000'000};
static constexpr NumberOption kPause{"--restart-pause", "seconds", "a number: the longest pause before a restart, in seconds", 0, 86400};

static constexpr NumberOption kWorkers{"--workers", "workers", "a number: of workers that come and go", 1, 4096};
static constexpr NumberOption kWorker{"--worker", "workers before this one", "a number: which worker this is, from 0", 0, 4095};
static constexpr std::string_view kMeet = "--meet";

static std::int64_t checked(const NumberOption& option, const std::string& text) {
  const std::optional<std::int64_t> count = config::parse_int(text);
  KF_CHECK(count && *count >= option.least && *count <= option.most, Code::config, "{} {}: must be a number of {}, {} to {}", option.name,
           text, option.what, option.least, option.most);
  return *count;
}

static std::optional<std::int64_t> take(const NumberOption& option, std::vector<std::string>& words) {
  const std::optional<std::string> text = take(option.name, option.needs, words);
  return text ? std::optional(checked(option, *text)) : std::nullopt;
}

/// The options of a launch, off `words`.
static LaunchOptions take_launch(std::vector<std::string>& words) {
  LaunchOptions out;
  const std::optional<std::string> processes = take(kProcesses, kOfProcesses.needs, words);
  out.processes = processes && *processes != "gpu" ? std::optional(checked(kOfProcesses, *processes)) : std::nullopt;
  out.of_gpus = processes == "gpu";
  out.nodes = take(kNodes, words);
  out.node = take(kNode, words);
  out.rendezvous = take(kRendezvous, "the place where processes meet: HOST:PORT", words).value_or("");
  const std::string output = take(kOutput, "a word: all or leader", words).value_or("all");
  KF_CHECK(output == "all" || output == "leader", Code::config, "{} {}: must be all or leader", kOutput, output);
  out.leader_only = output == "leader";
  return out;
}

/// The options of workers, off `words`.
static WorkerOptions take_workers(std::vector<std::string>& words) {
  WorkerOptions out;
  out.workers = take(kWorkers, words).value_or(0);
  out.worker = take(kWorker, words);
  out.place = take(kMeet, "a folder that all workers see, or HOST:PORT", words).value_or("");
  KF_CHECK(out.workers > 0 || (!out.worker && out.place.empty()), Code::config,
           "--worker and --meet are of workers that come and go: say how many there are, --workers N");
  KF_CHECK(!out.worker || *out.worker < out.workers, Code::config, "--worker {} of --workers {}: workers count from 0",
           out.worker.value_or(0), out.workers);
  KF_CHECK(!out.worker || !out.place.empty(), Code::config,
           "--worker {}: say where it meets the others, --meet FOLDER on a disk that all see, or HOST:PORT of worker 0",
           out.worker.value_or(0));
  return out;
}

std::vector<std::string> without_workers(std::vector<std::string> args) {
  take_workers(args);
  return args;
}

std::vector<std::string> without_launch(std::vector<std::string> args) {
  take_launch(args);
  return args;
}

std::vector<std::string> without_restarts(std::vector<std::string> args) {
  take(kRestarts, args);
  take(kPause, args);
  return args;
}

TrainArguments parse_train_arguments(const std::vector<std::string>& args) {
  TrainArguments out;
  std::vector<std::string> words = args;
  out.workers = take_workers(words);
  out.launch = take_launch(words);
  out.restarts = take(kRestarts, words).value_or(0);
  if (const std::optional<std::int64_t> pause = take(kPause, words)) {
    KF_CHECK(out.restarts > 0, Code::config, "--restart-pause {} is of restarts; give --max-restarts, too", *pause);
    out.longest_pause = *pause;
  }
  KF_CHECK(out.restarts == 0 || !out.launch.rendezvous.starts_with("file:"), Code::config,
           "--max-restarts {} does not go with --rdzv {}: a restart would find the file of the start before it; give --rdzv HOST:PORT",
           out.restarts, out.launch.rendezvous);
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
    } else if (!word.starts_with('-') && (word.ends_with(".toml") || word.ends_with(".lua") || is_run_folder(word))) {
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
