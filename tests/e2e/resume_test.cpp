#include <catch2/catch.hpp>

#include <cmath>
#include <csignal>
#include <filesystem>

#include "e2e/toy.h"

using kf::test::Finished;
using kf::test::Options;
using kf::test::Process;
using kf::test::Toy;

namespace {

/// Everything that a later step depends on is in these.
void check_same_checkpoint(const Toy& a, const std::string& run_a, const Toy& b, const std::string& run_b, const std::string& step) {
  for (const char* file : {"model.safetensors", "optimizer.safetensors"}) {
    INFO(file);
    CHECK((a.read("runs/" + run_a + "/checkpoints/" + step + "/" + file) == b.read("runs/" + run_b + "/checkpoints/" + step + "/" + file)));
  }
}

}  // namespace

TEST_CASE("resume: ten straight steps equal five, a restart, and five more, bit for bit", "[resume]") {
  const std::string optimizer = GENERATE(as<std::string>{}, "adamw", "lion", "muon", "schedule_free_adamw");
  CAPTURE(optimizer);
  const Toy toy;
  toy.trained({"--run.name=straight", "--optimizer.name=" + optimizer});
  // The schedule is that of ten steps in both: stop after five through a short run that is then made longer.
  REQUIRE(toy.train({"--run.name=parts", "--optimizer.name=" + optimizer, "--scheduler.decay_steps=8", "--train.max_steps=5"}).status == 0);
  const Finished rest = toy.train({"--run.name=parts", "--optimizer.name=" + optimizer, "--scheduler.decay_steps=8"});
  REQUIRE(rest.status == 0);
  CHECK(rest.err.find("train.max_steps 5 (checkpoint) -> 10 (now)") != std::string::npos);
  for (const char* key : {"loss", "grad_norm", "lr", "tokens"}) {
    CAPTURE(key);
    CHECK(toy.series("straight", key) == toy.series("parts", key));
  }
  CHECK(toy.series("straight", "perplexity") == toy.series("parts", "perplexity"));
  check_same_checkpoint(toy, "straight", toy, "parts", "step_10");
}

TEST_CASE("resume: the second restart in an epoch reads the right data", "[resume]") {
  const Toy toy;
  toy.trained({"--run.name=straight", "--scheduler.decay_steps=8"});
  for (const char* steps : {"3", "4", "10"}) {
    REQUIRE(toy.train({"--run.name=parts", "--scheduler.decay_steps=8", std::string("--train.max_steps=") + steps}).status == 0);
  }
  CHECK(toy.series("straight", "loss") == toy.series("parts", "loss"));
}

TEST_CASE("resume: with weights alone the next step differs", "[resume]") {
  const Toy toy;
  toy.trained({"--run.name=straight"});
  REQUIRE(toy.train({"--run.name=weights", "--checkpoint.init_from=runs/straight/checkpoints/step_5"}).status == 0);
  CHECK(toy.series("straight", "loss").at(6) != toy.series("weights", "loss").at(1));
}

TEST_CASE("resume: SIGINT finishes the step, saves, exits 75, and the run goes on as if nothing had happened", "[resume][signal]") {
  const int signal = GENERATE(SIGINT, SIGTERM);
  const Toy toy;
  const auto words = [](const std::string& name, int steps) {
    return std::vector<std::string>{"toy.toml",
                                    "--run.name=" + name,
                                    "--train.max_steps=" + std::to_string(steps),
                                    "--scheduler.total_steps=1000000",
                                    "--eval.enabled=false",
                                    "--checkpoint.interval=50"};
  };
  Options options;
  options.cwd = toy.folder();
  {
    Process process(toy.command(words("cut", 1000000)), options);  // which no machine has done before the signal comes
    REQUIRE(process.wait_for("saved step_50"));
    process.signal(signal);
    const Finished cut = process.wait();
    INFO(cut.out << cut.err);
    CHECK(cut.status == 75);
    CHECK(cut.err.find("stopping after this step (again to leave at once)") != std::string::npos);
    CHECK(cut.out.find("stopped at step") != std::string::npos);
    CHECK(cut.out.find("goes on from there") != std::string::npos);
  }
  const int steps = toy.series("cut", "loss").rbegin()->first + 50;
  REQUIRE(toy.host(words("cut", steps)).status == 0);
  REQUIRE(toy.host(words("straight", steps)).status == 0);
  CHECK(toy.series("straight", "loss") == toy.series("cut", "loss"));
}

TEST_CASE("resume: killed without warning, a run goes on from its last checkpoint with one row a step", "[resume][signal]") {
  const Toy toy;
  const std::vector<std::string> more{"toy.toml", "--run.name=killed", "--train.max_steps=60", "--eval.enabled=false",
                                      "--checkpoint.interval=10"};
  Options options;
  options.cwd = toy.folder();
  {
    Process process(toy.command(more), options);
    REQUIRE(process.wait_for("saved step_10"));
    process.signal(SIGKILL);
    process.wait();
  }
  REQUIRE(toy.host(more).status == 0);
  std::vector<std::string> straight = more;
  straight[1] = "--run.name=straight";
  REQUIRE(toy.host(straight).status == 0);
  CHECK(toy.series("killed", "loss").size() == 60);
  CHECK(toy.series("killed", "loss") == toy.series("straight", "loss"));
}

TEST_CASE("resume: kernels of large products are measured once, and a run that goes on takes the same", "[resume]") {
  const Toy toy;
  const std::vector<std::string> large{"toy.toml",
                                       "--run.name=large",
                                       "--model.dim=128",
                                       "--model.n_heads=4",
                                       "--train.seq_len=64",
                                       "--train.batch_size=4",
                                       "--model.max_seq_len=64",
                                       "--train.cpu_products=auto",
                                       "--train.max_steps=4",
                                       "--checkpoint.interval=2",
                                       "--eval.enabled=false"};
  const Finished first = toy.host(large);
  INFO(first.out << first.err);
  REQUIRE(first.status == 0);
  CHECK(first.err.find("matrix products: ") != std::string::npos);
  std::filesystem::remove_all(toy / "runs/large/checkpoints/step_4");
  std::filesystem::remove(toy / "runs/large/checkpoints/latest");
  std::filesystem::create_symlink("step_2", toy / "runs/large/checkpoints/latest");
  const auto losses = toy.series("large", "loss");
  const Finished second = toy.host(large);
  INFO(second.out << second.err);
  REQUIRE(second.status == 0);
  CHECK(second.err.find("resumed from") != std::string::npos);
  CHECK(second.err.find("matrix products: ") == std::string::npos);
  CHECK(toy.series("large", "loss") == losses);
  std::vector<std::string> plain = large;
  plain[1] = "--run.name=plain";
  plain.push_back("--train.cpu_products=plain");
  CHECK(toy.host(plain).err.find("matrix products: ") == std::string::npos);
}

TEST_CASE("resume: a finished run says so and touches nothing", "[resume]") {
  const Toy toy;
  REQUIRE(toy.train({"--train.max_steps=7"}).status == 0);
  CHECK(std::filesystem::read_symlink(toy / "runs/toy/checkpoints/latest") == "step_7");
  const std::string metrics = toy.read("runs/toy/metrics.jsonl");
  const auto written = std::filesystem::last_write_time(toy / "runs/toy/checkpoints/step_7/state.json");
  const Finished again = toy.train({"--train.max_steps=7"});
  CHECK(again.status == 0);
  CHECK(again.out.find("already complete") != std::string::npos);
  CHECK(toy.read("runs/toy/metrics.jsonl") == metrics);
  CHECK(std::filesystem::last_write_time(toy / "runs/toy/checkpoints/step_7/state.json") == written);
  const Finished more = toy.train({"--train.max_steps=9"});
  CHECK(more.status == 0);
  CHECK(toy.series("toy", "loss").size() == 9);
}

TEST_CASE("resume: another model, other data, or a finished run that differs is refused, naming run.fresh", "[resume]") {
  const Toy toy;
  toy.trained();
  struct Case {
    const char* change;
    const char* key;
  };
  const Case c = GENERATE(Case{"--model.dim=64", "model.dim"}, Case{"--data.file_pattern=a.txt", "data.file_pattern"},
                          Case{"--train.seq_len=16", "train.seq_len"}, Case{"--optimizer.lr=1e-2", "optimizer.lr"},
                          Case{"--optimizer.weight_decay=0", "optimizer.weight_decay"});
  CAPTURE(c.change);
  const Finished refused = toy.train({c.change});
  CHECK(refused.status == 2);
  CHECK(refused.err.find(c.key) != std::string::npos);
  CHECK(refused.err.find("run.fresh = true") != std::string::npos);
  if (c.key == std::string("model.dim")) {
    const Finished fresh = toy.train({c.change, "--run.fresh"});
    INFO(fresh.err);
    CHECK(fresh.status == 0);
    CHECK(std::filesystem::exists(toy / "runs/toy.1/metrics.jsonl"));  // moved aside, not deleted
  }
}

TEST_CASE("resume: paths that mean the same file are the same data, however they are spelled", "[resume]") {
  const Toy toy;
  const std::string first = "--data.datasets=[{path = \"text/a.txt\", name = \"a\"}, {path = \"text/b.txt\"}]";
  REQUIRE(toy.train({"--run.name=one"}).status == 0);
  REQUIRE(toy.train({"--run.name=mix", first}).status == 0);
  const std::string whole = std::filesystem::canonical(toy.folder()).string();
  for (const std::string& path : {std::string("./text"), std::string("text/../text/"), whole + "/text", whole + "/text/./../text"}) {
    CAPTURE(path);
    const Finished same = toy.train({"--run.name=one", "--data.dataset_path=" + path, "--eval.dataset_path=" + path});
    INFO(same.err);
    CHECK(same.status == 0);
    CHECK(same.out.find("already complete") != std::string::npos);
  }
  Options elsewhere;  // each path starts where it was written
  elsewhere.cwd = toy / "text";
  const Finished moved = kf::test::run(
      toy.command({"../toy.toml", "--run.dir=../runs/one", "--run.name=one", "--data.dataset_path=.", "--eval.dataset_path=../text"}),
      elsewhere);
  INFO(moved.out << moved.err);
  CHECK(moved.out.find("already complete") != std::string::npos);
  const Finished named =
      toy.train({"--run.name=mix", "--data.datasets=[{path = \"" + whole +
                                       "/text/a.txt\", name = \"a\"}, {path = \"./text/b.txt\", name = \"text/b.txt\"}]"});
  INFO(named.err);
  CHECK(named.out.find("already complete") != std::string::npos);
  // What a source is called makes its order.
  CHECK(toy.train({"--run.name=mix", "--data.datasets=[{path = \"text/a.txt\", name = \"a\"}, {path = \"./text/b.txt\"}]"}).status == 2);
  toy.write("other/a.txt", toy.read("text/a.txt"));
  CHECK(toy.train({"--run.name=one", "--data.dataset_path=other"}).status == 2);
}

TEST_CASE("resume: the job wins over the checkpoint, with a line for each key", "[resume]") {
  const Toy toy;
  REQUIRE(toy.train({"--train.max_steps=5", "--scheduler.name=constant", "--scheduler.warmup_steps=0"}).status == 0);
  const Finished resumed = toy.train({"--scheduler.name=constant", "--scheduler.warmup_steps=0"});
  REQUIRE(resumed.status == 0);
  const Toy other;
  // An unfinished run may change its rate: stopped by a signal it would be; here a script stops it.
  other.write("stop.lua", R"(return { extends = "toy.toml", run = { name = "toy" },
    scheduler = { name = "constant", warmup_steps = 0 } })");
  Options options;
  options.cwd = other.folder();
  {
    Process process(other.command({"stop.lua", "--train.max_steps=1000000", "--eval.enabled=false"}), options);
    REQUIRE(process.wait_for("saved step_5"));
    process.signal(SIGINT);
    REQUIRE(process.wait().status == 75);
  }
  const int stopped_at = other.series("toy", "lr").rbegin()->first;
  const Finished changed =
      other.host({"stop.lua", "--train.max_steps=" + std::to_string(stopped_at + 2), "--eval.enabled=false", "--optimizer.lr=1e-4"});
  INFO(changed.err);
  REQUIRE(changed.status == 0);
  CHECK(changed.err.find("optimizer.lr 0.003 (checkpoint) -> 0.0001 (now)") != std::string::npos);
  CHECK(other.series("toy", "lr").at(stopped_at + 1) == "0.0001");
}

TEST_CASE("resume: load_path takes over another run's checkpoint, and a finished one is not trained anew", "[resume]") {
  const Toy toy;
  const std::string from = "--checkpoint.load_path=runs/first/checkpoints/step_10";
  CHECK(toy.train({from, "--run.name=second"}).status == 2);  // it must exist
  REQUIRE(toy.train({"--run.name=first"}).status == 0);
  const Finished same = toy.train({from, "--run.name=second"});
  CHECK(same.status == 0);
  CHECK(same.out.find("already complete") != std::string::npos);
  const Finished more = toy.train({from, "--run.name=second", "--train.max_steps=12"});
  INFO(more.err);
  REQUIRE(more.status == 0);
  CHECK(toy.series("second", "loss").size() == 2);  // steps 11 and 12
}

TEST_CASE("run: two processes cannot share a folder", "[resume]") {
  const Toy toy;
  Options options;
  options.cwd = toy.folder();
  Process process(toy.command({"toy.toml", "--train.max_steps=100000", "--eval.enabled=false"}), options);
  REQUIRE(process.wait_for("saved step_5"));
  const Finished second = toy.train({"--train.max_steps=100000", "--eval.enabled=false"});
  CHECK(second.status == 1);
  CHECK(second.err.find("another process is running in runs/toy") != std::string::npos);
  const Finished fresh = toy.train({"--train.max_steps=100000", "--eval.enabled=false", "--run.fresh"});
  CHECK(fresh.status == 1);  // nor does a fresh start take it away
  CHECK(!std::filesystem::exists(toy / "runs/toy.1"));
}

TEST_CASE("run: two processes cannot save into one folder, whatever their names", "[resume]") {
  const Toy toy;
  Options options;
  options.cwd = toy.folder();
  const std::vector<std::string> job{"--train.max_steps=100000", "--eval.enabled=false", "--checkpoint.dir=shared"};
  std::vector<std::string> first{"toy.toml"};
  first.insert(first.end(), job.begin(), job.end());
  Process process(toy.command(first), options);
  REQUIRE(process.wait_for("saved step_5"));
  std::vector<std::string> other = job;
  other.emplace_back("--run.name=other");
  const Finished second = toy.train(other);
  CHECK(second.status == 1);
  CHECK(second.err.find("another process is running in shared") != std::string::npos);
}

TEST_CASE("resume: init_from and load_path take a run, its checkpoints or one of them", "[resume]") {
  const Toy toy;
  toy.trained({"--run.name=straight"});
  const std::string place = GENERATE("runs/straight", "runs/straight/checkpoints", "runs/straight/checkpoints/step_10");
  CAPTURE(place);
  CHECK(toy.train({"--run.name=weights", "--checkpoint.init_from=" + place}).status == 0);
  const Finished longer = toy.train({"--run.name=longer", "--checkpoint.load_path=" + place, "--train.max_steps=12"});
  INFO(longer.err);
  CHECK(longer.status == 0);
  CHECK(longer.err.find("step_10: step 10") != std::string::npos);
}

TEST_CASE("resume: tokens are added to a model by checkpoint.init_vocab", "[resume]") {
  const Toy toy;
  toy.trained({"--run.name=straight"});
  const auto wider = [&](const char* name, const std::vector<std::string>& more) {
    std::vector<std::string> words{std::string("--run.name=") + name, "--model.vocab_size=260", "--checkpoint.init_from=runs/straight"};
    words.insert(words.end(), more.begin(), more.end());
    return toy.train(words);
  };
  const Finished refused = wider("exact", {});
  CHECK(refused.status == 6);
  CHECK(refused.err.find("checkpoint.init_vocab = \"mean\"") != std::string::npos);
  REQUIRE(toy.train({"--run.name=same", "--checkpoint.init_from=runs/straight"}).status == 0);
  REQUIRE(wider("mean", {"--checkpoint.init_vocab=mean"}).status == 0);
  REQUIRE(wider("init", {"--checkpoint.init_vocab=init"}).status == 0);
  // A row that is the mean of all has the mean of their logits, and exp(mean) is at most the mean of exp: three more terms among 257.
  const double before = std::stod(toy.series("same", "loss").at(1));
  const double after = std::stod(toy.series("mean", "loss").at(1));
  CHECK(after > before - 1e-5);
  CHECK(after < before + std::log(260.0 / 257.0) + 1e-5);
}

TEST_CASE("resume: weights that do not fit leave no run behind", "[resume]") {
  const Toy toy;
  toy.trained({"--run.name=straight"});
  const Finished refused = toy.train({"--run.name=other", "--model.dim=48", "--checkpoint.init_from=runs/straight"});
  CHECK(refused.status == 6);
  CHECK(!std::filesystem::exists(toy / "runs/other"));
}

TEST_CASE("resume: what happened before the log file was there stands in it, too", "[resume]") {
  const Toy toy;
  toy.trained({"--run.name=straight"});
  REQUIRE(toy.train({"--run.name=weights", "--checkpoint.init_from=runs/straight"}).status == 0);
  CHECK(toy.read("runs/weights/log.txt").find("weights from runs/straight") != std::string::npos);
}

TEST_CASE("resume: a finished run whose stored result is damaged is complete all the same", "[resume]") {
  const Toy toy;
  toy.trained({"--run.name=done"});
  toy.write("runs/done/result.json", "{\"status\": \"comp");
  const Finished again = toy.train({"--run.name=done"});
  CHECK(again.status == 0);
  CHECK(again.out.find("already complete: 10 steps") != std::string::npos);
  CHECK(again.err.find("what the checkpoint says is reported instead") != std::string::npos);
  CHECK(again.err.find("is not known") == std::string::npos);  // the rows tell the loss
  std::filesystem::remove(toy / "runs/done/metrics.jsonl");
  const Finished without = toy.train({"--run.name=done"});
  CHECK(without.status == 0);
  CHECK(without.err.find("the loss of runs/done is not known") != std::string::npos);
  CHECK(without.err.find("runs/done/metrics.jsonl is not there") != std::string::npos);
}
