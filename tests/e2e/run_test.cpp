#include <catch2/catch.hpp>

#include <algorithm>
#include <sstream>

#include "e2e/toy.h"

using kf::test::Finished;
using kf::test::Toy;

TEST_CASE("run: trains, logs every step, evaluates, saves, and says where", "[run]") {
  const Toy toy;
  const Finished done = toy.train();
  INFO(done.out << done.err);
  REQUIRE(done.status == 0);
  for (const char* words : {"kf-host 0.1.0  torch 2.11.0", "job     toy.toml", "runs/toy", "model   transformer, ", "data    ",
                            "plan    10 steps x 256 tokens, adamw lr 0.003 cosine, fp32", " step     loss", "val ", "saved step_5",
                            "training complete: 10 steps, 2,560 tokens"}) {
    INFO(words);
    CHECK(done.out.find(words) != std::string::npos);
  }
  CHECK(done.out.find('\r') == std::string::npos);  // piped: plain lines
  CHECK(toy.series("toy", "loss").size() == 10);
  CHECK(toy.series("toy", "lr").at(1) == "0.0");
  CHECK(toy.series("toy", "perplexity").size() == 2);
  CHECK(std::stod(toy.series("toy", "loss").at(10)) < std::stod(toy.series("toy", "loss").at(1)));
  for (const char* file :
       {"job.toml", "log.txt", "metrics.jsonl", "checkpoints/step_10/state.json", "checkpoints/latest/model.safetensors"}) {
    INFO(file);
    CHECK(std::filesystem::exists(toy / "runs/toy" / file));
  }
}

TEST_CASE("run: the resolved job trains the same run again", "[run]") {
  const Toy toy;
  REQUIRE(toy.train().status == 0);
  REQUIRE(toy.host({"runs/toy/job.toml", "--run.name=again", "--run.dir=runs/again"}).status == 0);
  CHECK(toy.series("toy", "loss") == toy.series("again", "loss"));
}

TEST_CASE("run: a faulty job creates nothing", "[run]") {
  const Toy toy;
  const Finished bad = toy.train({"--optimizer.lr=fast", "--train.seq_len=4096"});
  CHECK(bad.status == 2);
  CHECK(bad.err.rfind("kf-host: 2 problems in the job\n", 0) == 0);
  CHECK(!std::filesystem::exists(toy / "runs"));
}

TEST_CASE("run: missing and empty data are data errors that create nothing", "[run]") {
  const Toy toy;
  toy.write("empty/a.txt", "");
  toy.write("short/a.txt", "too short");
  toy.write("none/readme", "");
  struct Case {
    const char* path;
    int status;
  };
  const Case c = GENERATE(Case{"nowhere", 2}, Case{"empty", 5}, Case{"short", 5}, Case{"none", 5});
  CAPTURE(c.path);
  const Finished bad = toy.train({std::string("--data.dataset_path=") + c.path});
  INFO(bad.err);
  CHECK(bad.status == c.status);
  CHECK(bad.err.find(c.path) != std::string::npos);
  CHECK(!std::filesystem::exists(toy / "runs"));
}

TEST_CASE("run: bf16 with fp32 masters follows fp32", "[run]") {
  const Toy toy;
  REQUIRE(toy.train({"--run.name=wide"}).status == 0);
  REQUIRE(toy.train({"--run.name=low", "--train.mixed_precision=bf16"}).status == 0);
  const auto wide = toy.series("wide", "loss");
  const auto low = toy.series("low", "loss");
  // Eight bits of mantissa in every product, averaged over 256 tokens: the losses (about 5) agree to a hundredth.
  for (const auto& [step, value] : wide) {
    CAPTURE(step);
    CHECK(std::stod(low.at(step)) == Approx(std::stod(value)).margin(2e-2));
    CHECK(low.at(step) != value);
  }
}

TEST_CASE("run: an interval that never divides the last step still saves it", "[run]") {
  const Toy toy;
  REQUIRE(toy.train({"--train.max_steps=7", "--checkpoint.interval=1000"}).status == 0);
  CHECK(std::filesystem::read_symlink(toy / "runs/toy/checkpoints/latest") == "step_7");
}

TEST_CASE("run: a window of checkpoints keeps its milestones, step 0 included", "[run]") {
  const Toy toy;
  REQUIRE(toy.train({"--checkpoint.dyn_ckpt_window.stop=4", "--checkpoint.keep_last_n=1"}).status == 0);
  for (const char* kept : {"step_0", "step_1", "step_2", "step_4", "step_10"}) {
    INFO(kept);
    CHECK(std::filesystem::exists(toy / "runs/toy/checkpoints" / kept));
  }
  CHECK(!std::filesystem::exists(toy / "runs/toy/checkpoints/step_5"));
  REQUIRE(toy.train({"--run.name=plain"}).status == 0);
  CHECK(toy.series("toy", "loss") == toy.series("plain", "loss"));  // saving changes nothing
}

TEST_CASE("run: a key without effect yet says so once", "[run]") {
  const Toy toy;
  const Finished done = toy.train({"--train.nccl_health_check_interval=5"});
  REQUIRE(done.status == 0);
  const std::size_t at = done.err.find("train.nccl_health_check_interval");
  REQUIRE(at != std::string::npos);
  CHECK(done.err.find("train.nccl_health_check_interval", at + 1) == std::string::npos);
}

TEST_CASE("run: what is not built is refused before anything starts", "[run]") {
  const Toy toy;
  const std::string change =
      GENERATE(as<std::string>{}, "--train.mixed_precision=fp8", "--run.device=cuda", "--data.tokenizer_path=tokenizer.json");
  CAPTURE(change);
  toy.write("tokenizer.json", "{}");
  const Finished refused = toy.train({change});
  INFO(refused.err);
  CHECK((refused.status == 2 || refused.status == 5));
  CHECK(!std::filesystem::exists(toy / "runs"));
}

TEST_CASE("run: several ranks are refused while the parallel engine is not built", "[run]") {
  const Toy toy;
  kf::test::Options options;
  options.cwd = toy.folder();
  options.env = {{"WORLD_SIZE", "2"}, {"RANK", "0"}};
  const Finished refused = kf::test::run(toy.command({"toy.toml"}), options);
  CHECK(refused.status == 4);
  CHECK(!std::filesystem::exists(toy / "runs"));
}

TEST_CASE("generate: continues a prompt from a run or a checkpoint, reproducibly", "[generate]") {
  const Toy toy;
  REQUIRE(toy.train().status == 0);
  const Finished one = toy.host({"generate", "runs/toy", "--prompt", "line ", "--max-new-tokens", "20", "--seed=3"});
  INFO(one.err);
  REQUIRE(one.status == 0);
  CHECK(one.out.rfind("line ", 0) == 0);
  CHECK(toy.host({"generate", "runs/toy/checkpoints/step_10", "--prompt", "line ", "--max-new-tokens", "20", "--seed=3"}).out == one.out);
  CHECK(toy.host({"generate", "runs/toy", "--prompt", "line ", "--max-new-tokens", "20", "--seed=4"}).out != one.out);
  CHECK(toy.host({"generate", "nowhere", "--prompt", "x"}).status == 6);
  CHECK(toy.host({"generate", "runs/toy"}).status == 2);
  CHECK(toy.host({"generate", "runs/toy", "--prompt", "x", "--max-new-tokens", "600"}).err.find("max_seq_len") != std::string::npos);
  const Finished typo = toy.host({"generate", "runs/toy", "--prompt", "x", "--temprature", "1"});
  CHECK(typo.status == 2);
  CHECK(typo.err.find("did you mean '--temperature'?") != std::string::npos);
}

TEST_CASE("help: fits a screen; the version names what the build is made of; an unknown command is told", "[help]") {
  const Toy toy;
  const Finished help = toy.host({"--help"});
  CHECK(help.status == 0);
  CHECK(std::count(help.out.begin(), help.out.end(), '\n') <= 24);
  std::istringstream lines(help.out);
  for (std::string line; std::getline(lines, line);) {
    CHECK(line.size() <= 80);
  }
  const Finished version = toy.host({"--version"});
  for (const char* word : {"kf-host 0.1.0", "torch 2.11.0", "CUDA", "LuaJIT 2.1", "git", KF_BUILD_TYPE}) {
    INFO(word << " in " << version.out);
    CHECK(version.out.find(word) != std::string::npos);
  }
  CHECK((version.out.find("Clang ") != std::string::npos || version.out.find("GNU ") != std::string::npos));  // the compiler
  const Finished train = toy.host({"train", "--help"});
  CHECK(train.status == 0);
  CHECK(train.out.find("optimizer") != std::string::npos);
  const Finished typo = toy.host({"generat"});
  CHECK(typo.status == 2);
  CHECK(typo.err.find("did you mean 'generate'?") != std::string::npos);
  const Finished registry = toy.host({"registry", "optimizer"});
  CHECK(registry.out.find("muon") != std::string::npos);
  CHECK(toy.host({"registry", "optimiser"}).err.find("did you mean 'optimizer'?") != std::string::npos);
}

TEST_CASE("help: every command has it, under both names, and a misspelt command is told before its file is read", "[help]") {
  const Toy toy;
  for (const char* command : {"train", "generate", "eval", "config", "registry", "test", "lua", "sweep"}) {
    for (const char* help : {"--help", "-h"}) {
      const Finished shown = toy.host({command, help});
      INFO(command << ' ' << help);
      CHECK(shown.status == 0);
      CHECK(shown.out.starts_with("usage: kf-host "));
    }
  }
  CHECK(toy.host({"generate"}).status == 2);
  const Finished unknown = toy.host({"trian", "toy.toml"});
  CHECK(unknown.status == 2);
  CHECK(unknown.err.find("did you mean 'train'?") != std::string::npos);
}

TEST_CASE("run: a GPU that cannot be had is said before anything starts", "[run]") {
  if (std::filesystem::exists("/dev/nvidiactl")) {
    WARN("skipped: this machine has a GPU; tests/gpu/run looks at it");
    return;
  }
  const Toy toy;
  const Finished refused = toy.train({"--run.device=cuda"});
  CHECK(refused.status == 2);
  CHECK(refused.err.find("run.device = \"cuda\" cannot be had: ") != std::string::npos);
  CHECK(refused.err.find("run.device = \"cpu\"") != std::string::npos);
  CHECK(!std::filesystem::exists(toy / "runs"));
  const Finished automatic = toy.train({"--run.device=auto"});
  CHECK(automatic.status == 0);
  CHECK(automatic.out.find("  cpu, ") != std::string::npos);
}

TEST_CASE("run: run.fresh moves earlier runs only", "[run]") {
  const Toy toy;
  const Finished data = toy.train({"--run.dir=text", "--run.fresh"});
  CHECK(data.status == 2);
  CHECK(data.err.find("run.dir") != std::string::npos);
  CHECK(std::filesystem::exists(toy / "text/a.txt"));
  const Finished here = toy.train({"--run.dir=.", "--run.fresh"});
  CHECK(here.status == 2);
  CHECK(std::filesystem::exists(toy / "toy.toml"));

  REQUIRE(toy.train({"--run.dir=out/"}).status == 0);
  const Finished inside = toy.train({"--run.dir=out/", "--run.fresh", "--checkpoint.init_from=out/checkpoints/step_5"});
  CHECK(inside.status == 2);
  CHECK(inside.err.find("checkpoint.init_from") != std::string::npos);
  CHECK(std::filesystem::exists(toy / "out/checkpoints/step_5"));
  // A fault that only shows once the model is there still leaves the run where it is.
  const Finished faulty = toy.train({"--run.dir=out/", "--run.fresh", "--checkpoint.init_from=nowhere"});
  CHECK(faulty.status != 0);
  CHECK(std::filesystem::exists(toy / "out/checkpoints/step_10"));
  CHECK(!std::filesystem::exists(toy / "out.1"));
  CHECK(toy.train({"--run.dir=out/", "--run.fresh"}).status == 0);
  CHECK(std::filesystem::exists(toy / "out.1/checkpoints/step_10"));
}

TEST_CASE("run: a job.toml that no run has made stays as it is", "[run]") {
  const Toy toy;
  const std::string mine = "# mine\nextends = \"toy.toml\"\n";
  (void)toy.write("job.toml", mine);
  for (const char* fresh : {"--run.fresh=false", "--run.fresh=true"}) {
    const Finished refused = toy.host({"job.toml", "--run.dir=.", fresh});
    CHECK(refused.status == 2);
    CHECK(toy.read("job.toml") == mine);
    CHECK(!std::filesystem::exists(toy / ".lock"));
  }
  (void)toy.write("own/job.toml", mine);
  CHECK(toy.train({"--run.dir=own", "--run.fresh"}).status == 2);  // nor is its folder moved aside
  CHECK(toy.read("own/job.toml") == mine);
  REQUIRE(toy.train().status == 0);
  CHECK(toy.host({"runs/toy/job.toml"}).out.find("already complete") != std::string::npos);  // a run's own may be started
}

TEST_CASE("run: a folder that cannot be made is named with its key", "[run]") {
  const Toy toy;
  const Finished refused = toy.train({"--run.dir=toy.toml/x"});
  CHECK(refused.status == 2);
  CHECK(refused.err.find("run.dir: the folder toy.toml/x cannot be made: Not a directory") != std::string::npos);
}

TEST_CASE("run: closed standard streams lend their numbers to no file", "[run]") {
  const Toy toy;
  const std::string program = "'" + std::string(KF_HOST) + "'";
  REQUIRE(kf::test::run({"sh", "-c", program + " toy.toml <&- >&- 2>&-"}, {.cwd = toy.folder()}).status == 0);
  CHECK(toy.read("runs/toy/.lock").empty());
  CHECK(toy.read("runs/toy/metrics.jsonl").starts_with("{\"step\""));
  CHECK(toy.train().out.find("already complete") != std::string::npos);
}

TEST_CASE("run: rows of a run without its checkpoints are kept", "[run]") {
  const Toy toy;
  REQUIRE(toy.train().status == 0);
  const Finished again = toy.train({"--checkpoint.dir=elsewhere", "--train.max_steps=2"});
  CHECK(again.status == 0);
  CHECK(again.err.find("metrics.jsonl.1") != std::string::npos);
  CHECK(toy.read("runs/toy/metrics.jsonl.1").find("\"step\": 10") != std::string::npos);
}

TEST_CASE("run: output that cannot be written is a failure", "[run]") {
  if (!std::filesystem::exists("/dev/full")) {
    WARN("skipped: this system has no /dev/full");
    return;
  }
  const Toy toy;
  const Finished full = kf::test::run({"sh", "-c", "'" + std::string(KF_HOST) + "' config show toy.toml > /dev/full"}, {toy.folder()});
  CHECK(full.status == 1);
  CHECK(full.err.find("standard output") != std::string::npos);
}

TEST_CASE("run: watched numbers, the way of the wall time and a heartbeat, over a resume", "[run]") {
  const Toy toy;
  const std::vector<std::string> asked{"--metrics.watch=[\"grads\", \"updates\"]", "--metrics.watch_interval=4", "--metrics.log_interval=5",
                                       "--metrics.goodput=true", "--metrics.heartbeat_sec=0.001"};
  std::vector<std::string> half = asked;
  half.emplace_back("--train.max_steps=6");
  REQUIRE(toy.train(half).status == 0);
  const Finished done = toy.train(asked);
  INFO(done.out << done.err);
  REQUIRE(done.status == 0);
  CHECK(toy.series("toy", "watch/grads/layers.0").size() == 2);
  CHECK(toy.series("toy", "watch/updates").contains(8));  // a row of its own
  CHECK(toy.series("toy", "loss").size() == 6);           // 1, 4, 5, 6, 8, 10
  const double goodput = std::stod(toy.series("toy", "goodput").at(10));
  CHECK(goodput > 0);
  CHECK(goodput < 1);
  CHECK(std::stod(toy.series("toy", "time/lost").at(8)) > 0);  // between the processes
  CHECK_THAT(toy.read("runs/toy/heartbeat.json"), Catch::Contains("\"doing\": \"complete\"") && Catch::Contains("\"step\": 10"));
}

TEST_CASE("run: an update that is no multiple of the micro-batch goes on after a stop as if there had been none", "[run]") {
  const Toy toy;
  const std::vector<std::string> uneven{"--train.batch_size=4", "--train.grad_accum_steps=1", "--train.global_batch_size=6",
                                        "--run.name=whole"};
  const Finished whole = toy.train(uneven);
  INFO(whole.out << whole.err);
  REQUIRE(whole.status == 0);
  CHECK(toy.series("whole", "tokens").at(1) == std::to_string(6 * 32));
  std::vector<std::string> parts = uneven;
  parts.back() = "--run.name=parts";
  std::vector<std::string> first = parts;
  first.emplace_back("--checkpoint.interval=3");
  REQUIRE(toy.train(first).status == 0);
  std::filesystem::remove_all(toy / "runs/parts/checkpoints/step_10");
  std::filesystem::remove_all(toy / "runs/parts/checkpoints/step_9");
  std::filesystem::remove(toy / "runs/parts/result.json");
  std::filesystem::remove(toy / "runs/parts/checkpoints/latest");
  std::filesystem::create_directory_symlink("step_6", toy / "runs/parts/checkpoints/latest");
  REQUIRE(toy.train(first).status == 0);
  CHECK(toy.series("parts", "loss") == toy.series("whole", "loss"));
}
