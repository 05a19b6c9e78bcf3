// The first minutes: wrong words, options with a blank, --dry-run, memory, launchers that start several processes.

#include <catch2/catch.hpp>
#include <chrono>
#include <filesystem>
#include <iostream>
#include <string>
#include <vector>

#include "support/process.h"
#include "support/temp_dir.h"

namespace fs = std::filesystem;
using namespace kf::test;
using Catch::Matchers::Contains;

namespace {

class Folder {
 public:
  Folder() {
    std::string text;
    for (int i = 0; i < 200; ++i) {
      text += "a line of text, number " + std::to_string(i) + "\n";
    }
    dir_.write("text.txt", text);
    dir_.write("job.toml", R"([model]
dim = 32
n_layers = 2
n_heads = 2
vocab_size = 257
max_seq_len = 32
[train]
batch_size = 4
seq_len = 32
max_steps = 2
mixed_precision = "fp32"
[scheduler]
warmup_steps = 0
[data]
dataset_path = "text.txt"
)");
  }
  Finished host(const std::vector<std::string>& args, std::map<std::string, std::string> env = {}) const {
    std::vector<std::string> argv{KF_HOST};
    argv.insert(argv.end(), args.begin(), args.end());
    return run(argv, {.cwd = dir_.path(), .env = std::move(env)});
  }
  fs::path operator/(const fs::path& name) const { return dir_ / name; }
  void write(const std::string& name, const std::string& text) const { dir_.write(name, text); }

 private:
  TempDir dir_;
};

}  // namespace

TEST_CASE("first sight: wrong words say what is right", "[cli]") {
  const Folder folder;
  const auto refused = [&](const std::vector<std::string>& args, const std::string& word) {
    const Finished done = folder.host(args);
    CAPTURE(args, done.out, done.err);
    CHECK(done.status == 2);
    CHECK_THAT(done.err, Contains(word));
  };
  refused({}, "usage: kf-host");
  refused({"trian", "job.toml"}, "did you mean 'train'?");
  refused({"docter"}, "did you mean 'doctor'?");
  refused({"job.tmol"}, "neither a command nor a .toml or .lua file");
  refused({"config"}, "usage: kf-host config");
  refused({"config", "chek", "job.toml"}, "did you mean 'check'?");
  refused({"data"}, "usage: kf-host data");
  refused({"tokenizer", "enocde", "x"}, "did you mean 'encode'?");
  refused({"sweep", "shwo", "x"}, "did you mean 'show'?");
  refused({"job.toml", "--optimizer.lr"}, "needs a value: --optimizer.lr=VALUE");
  refused({"job.toml", "--optimiser.lr=1"}, "optimizer");
  for (const char* word : {"--dryrun", "--dry_run", "--dry-run=true"}) {
    refused({"job.toml", word}, "did you mean --dry-run (without a value)?");
  }
  refused({"generate"}, "no checkpoint was given");
  refused({"generate", "runs/x", "--promt", "a"}, "did you mean '--prompt'?");
  refused({"completion", "tcsh"}, "bash|fish|zsh");
}

TEST_CASE("first sight: help of a command in both orders", "[cli]") {
  const Folder folder;
  CHECK(folder.host({"help", "train"}).out == folder.host({"train", "--help"}).out);
  CHECK_THAT(folder.host({"help", "generate"}).out, Contains("usage: kf-host generate"));
}

TEST_CASE("first sight: values may stand behind a blank", "[cli]") {
  const Folder folder;
  const Finished done = folder.host({"job.toml", "--optimizer.lr", "1e-5", "--train.max_steps", "1", "--run.name", "blank"});
  CAPTURE(done.err);
  CHECK(done.status == 0);
  CHECK_THAT(done.out, Contains("1 steps") && Contains("lr 1e-05"));
  CHECK(fs::exists(folder / "runs/blank/job.toml"));
}

TEST_CASE("first sight: config hands a script its arguments", "[cli]") {
  const Folder folder;
  folder.write("s.lua", "return { extends = 'job.toml', train = { max_steps = tonumber(require('kf').args[1]) } }\n");
  CHECK_THAT(folder.host({"config", "explain", "s.lua", "train.max_steps", "--", "7"}).out, Contains("= 7"));
}

TEST_CASE("first sight: a dry run checks everything, prints plan and memory, and leaves nothing behind", "[cli]") {
  const Folder folder;
  const Finished done = folder.host({"job.toml", "--dry-run"});
  CAPTURE(done.err);
  CHECK(done.status == 0);
  CHECK_THAT(done.out, Contains("plan ") && Contains("memory ") && Contains("activations") && Contains("would start a new run"));
  CHECK_FALSE(fs::exists(folder / "runs"));
  CHECK(folder.host({"job.toml", "--dry-run", "--data.dataset_path=/no/such"}).status == 2);
  REQUIRE(folder.host({"job.toml"}).status == 0);
  CHECK_THAT(folder.host({"job.toml", "--dry-run"}).out, Contains("is complete already"));
  CHECK_THAT(folder.host({"job.toml", "--dry-run", "--train.max_steps=4"}).out, Contains("would go on from"));
}

TEST_CASE("first sight: a job that cannot fit is refused before anything is allocated, with what would help", "[cli][memory]") {
  const Folder folder;
  // 405 B parameters: 1.6 TB of weights alone.
  const std::vector<std::string> large{"job.toml",
                                       "--model.preset=llama3.1-405b",
                                       "--model.dim=16384",
                                       "--model.n_layers=126",
                                       "--model.n_heads=128",
                                       "--model.vocab_size=128256",
                                       "--run.name=large"};
  const auto with = [&](const std::string& more) {
    std::vector<std::string> args = large;
    args.push_back(more);
    return folder.host(args);
  };
  const Finished refused = folder.host(large);
  CAPTURE(refused.err);
  CHECK(refused.status == 2);
  CHECK_THAT(refused.err, Contains("needs about") && Contains("optimizer (adamw)") && Contains("what would help") &&
                              Contains("--run.memory_check=warn"));
  CHECK_FALSE(fs::exists(folder / "runs/large"));
  CHECK_THAT(with("--dry-run").err, Contains("needs about"));
  std::vector<std::string> check = large;
  check.insert(check.begin(), "config");
  check.insert(check.begin() + 1, "check");
  const Finished checked = folder.host(check);
  CHECK(checked.status == 0);
  CHECK_THAT(checked.out, Contains("memory: about") && Contains("warning: that is more than"));
}

TEST_CASE("first sight: config takes runs and checkpoints whose jobs name parts of a script", "[cli]") {
  const Folder folder;
  folder.write("own.lua", R"(local kf = require("kf")
kf.register.scheduler("half", function() return function() return 0.5 end end)
return { extends = "job.toml", run = { name = "own" }, scheduler = { name = "half" } }
)");
  REQUIRE(folder.host({"own.lua"}).status == 0);
  for (const char* place : {"runs/own", "runs/own/job.toml", "runs/own/checkpoints/latest", "runs/own/checkpoints/step_2"}) {
    const Finished shown = folder.host({"config", "show", place});
    CAPTURE(place, shown.err);
    CHECK(shown.status == 0);
    CHECK_THAT(shown.out, Contains("name = \"half\""));
  }
  CHECK(folder.host({"job.toml", "--run.name=other", "--optimizer.lr=1e-5"}).status == 0);
  const Finished differ = folder.host({"config", "diff", "runs/own", "runs/other"});
  CAPTURE(differ.err);
  CHECK_THAT(differ.out, Contains("scheduler.name") && Contains("optimizer.lr") && !Contains("model.dim"));
}

TEST_CASE("first sight: the job around a known model loads as it stands", "[cli]") {
  const Folder folder;
  const Finished made = folder.host({"config", "new", "llama3.2-1b"});
  REQUIRE(made.status == 0);
  TempDir dir;
  const Finished checked = folder.host({"config", "check", dir.write("job.toml", made.out).string(), "--data.dataset_path=text.txt"});
  CAPTURE(checked.err);
  CHECK(checked.status == 0);
  CHECK_THAT(checked.out, Contains("memory: about") && Contains("no problems"));
}

TEST_CASE("first sight: several processes of which a launcher does not say which is which do not each train alone", "[cli]") {
  const Folder folder;
  using Env = std::map<std::string, std::string>;
  for (const Env& env : {Env{{"WORLD_SIZE", "2"}}, Env{{"OMPI_COMM_WORLD_SIZE", "2"}}, Env{{"PMI_SIZE", "2"}},
                         Env{{"SLURM_STEP_NUM_TASKS", "2"}, {"SLURM_STEP_ID", "0"}}, Env{{"MV2_COMM_WORLD_SIZE", "2"}}}) {
    const Finished done = folder.host({"job.toml"}, env);
    CAPTURE(env.begin()->first, done.err);
    CHECK(done.status == 4);
    CHECK_THAT(done.err,
               Contains("2 processes were started together") && Contains(env.rbegin()->first + "=2") && Contains("which one this is"));
  }
  CHECK_FALSE(fs::exists(folder / "runs"));
  CHECK(folder.host({"job.toml"}, {{"SLURM_NTASKS", "2"}}).status == 0);  // the batch script itself
}

TEST_CASE("first sight: a job for several processes says how they are started", "[cli]") {
  const Folder folder;
  const Finished done = folder.host({"job.toml", "--distributed.tp=2"});
  CHECK(done.status == 2);
  CHECK_THAT(done.err, Contains("distributed.tp = 2 asks for 2 processes, and this is one: start them with `kf-host --nproc 2"));
}

TEST_CASE("first sight: a job without a model or a length is warned before it starts", "[cli]") {
  const Folder folder;
  const Finished done = folder.host({"job.toml", "--dry-run"});
  CHECK_THAT(done.err, !Contains("the job has no [model]"));
  TempDir bare;
  bare.write("job.toml", "[data]\ndataset_path = \"" + (folder / "text.txt").string() + "\"\n");
  const Finished warned = folder.host({(bare / "job.toml").string(), "--dry-run", "--run.memory_check=off"});
  CHECK_THAT(warned.err, Contains("warning: the job has no [model]") && Contains("6.7 B") && Contains("100,000 steps"));
}

TEST_CASE("first sight: a run in bf16 on a CPU trains, and says it where fp32 is faster", "[cli]") {
  const Folder folder;
  const Finished done = folder.host({"job.toml", "--train.mixed_precision=bf16"});
  CAPTURE(done.out, done.err);
  CHECK(done.status == 0);
  CHECK_THAT(done.out, Contains("training complete"));
  if (done.err.find("is slower than fp32 on this CPU") != std::string::npos) {  // by a measurement: not on every processor
    CHECK_THAT(done.err, Contains("--train.mixed_precision=fp32 is faster"));
  }
  CHECK_THAT(folder.host({"job.toml", "--run.name=plain"}).err, !Contains("is slower than fp32"));
}

TEST_CASE("first sight: completion for bash knows commands and settings", "[cli]") {
  const Folder folder;
  const Finished done = folder.host({"completion", "bash"});
  REQUIRE(done.status == 0);
  CHECK_THAT(done.out, Contains("complete -") && Contains("--optimizer.lr=") && Contains("tokenizer"));
  const std::string script = done.out + "\nCOMP_WORDS=(kf-host conf) COMP_CWORD=1; _kf_host; echo \"${COMPREPLY[@]}\"\n" +
                             "COMP_WORDS=(kf-host job.toml --optimizer.mu) COMP_CWORD=2; _kf_host; echo \"${COMPREPLY[@]}\"\n";
  const Finished tried = run({"bash", "-c", script}, {});
  CHECK(tried.status == 0);
  CHECK_THAT(tried.out, Contains("config\n") && Contains("--optimizer.muon_momentum="));
}

TEST_CASE("first sight: Tab completes commands, files, settings and their values in real shells", "[cli]") {
  const std::string shell = GENERATE("bash", "zsh", "fish");
  CAPTURE(shell);
  if (run({"sh", "-c", "command -v " + shell}, {}).status != 0) {
    std::cerr << "skipped: there is no " << shell << " here (scripts/setup.sh shells installs zsh and fish), so nobody presses Tab in it\n";
    return;
  }
  const TempDir dir;
  dir.write("my job.toml", "");
  dir.write("s.lua", "");
  dir.write("text/a.txt", "");
  Options options;
  options.timeout = std::chrono::seconds(900);
  const Finished done =
      run({"python3", std::string(KF_SOURCE_DIR) + "/tests/e2e/press_tab.py", shell, KF_HOST, dir.path().string()}, options);
  INFO(done.out << done.err);
  CHECK(done.status == 0);
}
