// Models, tokenizers and data of the hub by name, with the stand-in server, and every command of docs/huggingface.md.

#include <catch2/catch.hpp>

#include <chrono>
#include <fstream>
#include <thread>

#include "e2e/toy.h"

namespace {

using Catch::Matchers::Contains;
using kf::test::Finished;
namespace fs = std::filesystem;

/// A folder that looks like the project's, a server with examples/hub-stand-in/root, and a cache of its own.
class HubProject {
 public:
  HubProject() {
    for (const char* part : {"docs", "examples", "configs", "lua"}) {
      fs::create_symlink(fs::path(KF_SOURCE_DIR) / part, dir_ / part);
    }
    fs::create_directories(dir_ / "state");
    server_ = std::make_unique<kf::test::Process>(
        std::vector<std::string>{"python3", std::string(KF_SOURCE_DIR) + "/tests/support/hub_server.py",
                                 std::string(KF_SOURCE_DIR) + "/examples/hub-stand-in/root", (dir_ / "state").string()});
    if (!server_->wait_for("ready")) {
      throw std::runtime_error("the stand-in for the hub did not start");
    }
    std::getline(std::ifstream(dir_ / "state/port"), port_);
    endpoint_ = "http://127.0.0.1:" + port_ + "/ok";
  }

  void set_endpoint(const std::string& endpoint) { endpoint_ = endpoint; }
  std::string address(const std::string& mode) const { return "http://127.0.0.1:" + port_ + "/" + mode; }
  void set(const std::string& name, const std::string& value) { more_[name] = value; }

  Finished shell(const std::string& command) const {
    kf::test::Options options;
    options.cwd = dir_.path();
    options.env = more_;
    options.env["HF_ENDPOINT"] = endpoint_;
    options.env["HF_HOME"] = (dir_ / "hf").string();
    return kf::test::run({"bash", "-c", "kf-host() { '" + std::string(KF_HOST) + "' \"$@\"; }; " + command}, options);
  }
  std::string requests() const {
    std::ifstream in(dir_ / "state/requests");
    return {std::istreambuf_iterator<char>(in), {}};
  }
  fs::path operator/(const fs::path& name) const { return dir_ / name; }
  void write(const fs::path& name, const std::string& content) const { dir_.write(name, content); }

 private:
  kf::test::TempDir dir_;
  std::unique_ptr<kf::test::Process> server_;
  std::string port_;
  std::string endpoint_;
  std::map<std::string, std::string> more_;
};

constexpr const char* kModel = "examples/hub-stand-in/root/kf-host/tiny";  // the same, as a folder
const std::string kAsk = " --prompt 'the model' --max-new-tokens 8 --temperature 0 --format json";

}  // namespace

TEST_CASE("hub: every command of docs/huggingface.md works", "[docs][hub]") {
  const HubProject project;
  std::ifstream in(fs::path(KF_SOURCE_DIR) / "docs/huggingface.md");
  const std::string text{std::istreambuf_iterator<char>(in), {}};
  const std::size_t job = text.find("# docs-tune.toml");  // the page's own job
  REQUIRE(job != std::string::npos);
  project.write("docs-tune.toml", text.substr(job, text.find("```", job) - job));
  const std::vector<std::string> commands = kf::test::commands_of(fs::path(KF_SOURCE_DIR) / "docs/huggingface.md");
  CHECK(commands.size() > 5);
  for (const std::string& command : commands) {
    CAPTURE(command);
    const Finished done = project.shell(command);
    INFO(done.out << done.err);
    CHECK(done.status == 0);
  }
}

TEST_CASE("hub: a name works wherever a folder of a model or a tokenizer does, and means the same", "[hub]") {
  HubProject project;
  const Finished folder = project.shell("kf-host generate " + std::string(kModel) + kAsk);
  INFO(folder.err);
  REQUIRE(folder.status == 0);
  const Finished named = project.shell("kf-host generate kf-host/tiny" + kAsk);
  INFO(named.err);
  CHECK(named.status == 0);
  CHECK(named.out == folder.out);
  CHECK(project.shell("kf-host generate hf:kf-host/tiny@main" + kAsk).out == folder.out);
  const std::string eval = " --data docs/config.md --train.seq_len=64 --eval.steps=2 --format json | grep -o '\"eval\".*'";
  CHECK(project.shell("kf-host eval kf-host/tiny" + eval).out == project.shell("kf-host eval " + std::string(kModel) + eval).out);
  CHECK(project.shell("kf-host tokenizer encode kf-host/tiny 'a text'").out ==
        project.shell("kf-host tokenizer encode " + std::string(kModel) + " 'a text'").out);
  project.write("load.lua",
                "local m = require('kf').load_model('kf-host/tiny')\n"
                "print(m:generate('the model', {max_new_tokens = 4, temperature = 0}).text)");
  const Finished lua = project.shell("kf-host lua load.lua");
  INFO(lua.err);
  CHECK(lua.status == 0);
  // A job: weights, shape and tokenizer by name; the same losses as from the folder.
  const auto losses = [&](const std::string& run) {
    return project.shell("grep -o '\"loss\": *[0-9.]*' runs/" + run + "/metrics.jsonl").out;
  };
  project.write("tune.toml",
                "[train]\nbatch_size = 2\nseq_len = 32\nmax_steps = 2\nmixed_precision = \"fp32\"\n[scheduler]\nwarmup_steps = 1\n"
                "[data]\ndataset_path = \"docs\"\nfile_pattern = \"data.md\"\n");
  const Finished tuned =
      project.shell("kf-host tune.toml --run.name=named --checkpoint.init_from=kf-host/tiny --data.tokenizer_path=kf-host/tiny");
  INFO(tuned.err);
  CHECK(tuned.status == 0);
  REQUIRE(
      project
          .shell("kf-host tune.toml --run.name=folder --checkpoint.init_from=" + std::string(kModel) + " --data.tokenizer_path=" + kModel)
          .status == 0);
  CHECK(!losses("named").empty());
  CHECK(losses("named") == losses("folder"));
  CHECK(project.shell("kf-host config check tune.toml --model.preset=kf-host/tiny --data.tokenizer_path=kf-host/tiny").status == 0);
  // Everything is cached now: no hub is needed.
  project.set_endpoint("http://127.0.0.1:1");
  project.set("HF_HUB_OFFLINE", "1");
  CHECK(project.shell("kf-host generate kf-host/tiny" + kAsk).out == folder.out);
}

TEST_CASE("hub: config takes a model's name where it takes a job", "[hub]") {
  const HubProject project;
  const Finished named = project.shell("kf-host config show kf-host/tiny --train.seq_len=64");
  INFO(named.err);
  CHECK(named.status == 0);
  CHECK(named.out == project.shell("kf-host config show --model.preset=kf-host/tiny --train.seq_len=64").out);
  CHECK_THAT(project.shell("kf-host config explain kf-host/tiny model.dim --train.seq_len=64").out, Contains("model.dim ="));
  const Finished none = project.shell("kf-host config show kf-host/none");
  CHECK(none.status == 2);
  CHECK_THAT(none.err, Contains("kf-host/none"));
}

TEST_CASE("hub: a download that was cut off goes on", "[hub]") {
  HubProject project;
  const Finished folder = project.shell("kf-host generate " + std::string(kModel) + kAsk);
  project.set_endpoint(project.address("cut"));
  const Finished cut = project.shell("kf-host generate kf-host/tiny" + kAsk);
  INFO(cut.err);
  CHECK(cut.out == folder.out);
  CHECK_THAT(project.requests(), Contains("/cut/kf-host/tiny/resolve/") && Contains("bytes="));
}

TEST_CASE("hub: tokens are needed for what is closed, and passwords are never shown", "[hub]") {
  HubProject project;
  project.set_endpoint(project.address("closed"));
  const Finished closed = project.shell("kf-host tokenizer info kf-host/tiny");
  CHECK(closed.status == 5);
  CHECK_THAT(closed.err, Contains("status 401") && Contains("set HF_TOKEN") && Contains("there is no file or folder \"kf-host/tiny\""));
  project.set("HF_TOKEN", "secret");
  CHECK(project.shell("kf-host tokenizer info kf-host/tiny").status == 0);
  const auto begin = std::chrono::steady_clock::now();
  project.set_endpoint("http://user:sekritpw@127.0.0.1:9");
  for (const char* command :
       {"kf-host data info hf:a/b", "kf-host tokenizer info a/b", "kf-host generate a/b --prompt x", "kf-host eval a/b --data docs/data.md",
        "kf-host config check examples/own-tokenizer/job.toml --model.preset=a/b", "kf-host data info http://user:sekritpw@127.0.0.1/x"}) {
    CAPTURE(command);
    const Finished refused = project.shell(command);
    CHECK(refused.status != 0);
    CHECK_THAT(refused.out + refused.err, Contains("127.0.0.1") && !Contains("sekritpw"));
  }
  CHECK(std::chrono::steady_clock::now() - begin < std::chrono::seconds(120));  // two tries, a second apart, each
}

TEST_CASE("hub: what is neither a path nor a name says so", "[hub]") {
  const HubProject project;
  for (const char* command :
       {"kf-host tokenizer info no/such/tokenizer", "kf-host tokenizer info absent.json", "kf-host generate nowhere --prompt x",
        "kf-host eval no/such/run --data docs/data.md", "kf-host examples/own-tokenizer/job.toml --checkpoint.init_from=no/such/model"}) {
    CAPTURE(command);
    const Finished refused = project.shell(command);
    INFO(refused.err);
    CHECK(refused.status != 0);
    CHECK_THAT(refused.err, Contains("ORG/NAME"));
    CHECK_THAT(project.requests(), !Contains("such") && !Contains("absent") && !Contains("nowhere"));
  }
}
