// kf-host report and kf-host serve, through the real program; pages in a real browser (scripts/chromium.sh).

#include <catch2/catch.hpp>

#include <sys/stat.h>

#include <csignal>
#include <fstream>
#include <iostream>

#include "e2e/live_run.h"
#include "e2e/made_run.h"
#include "e2e/toy.h"
#include "support/free_port.h"
#include "support/process.h"

using namespace kf::test;
using Catch::Contains;
namespace fs = std::filesystem;

namespace {

Finished host(const fs::path& folder, std::vector<std::string> args) {
  args.insert(args.begin(), KF_HOST);
  Options options;
  options.cwd = folder;
  return run(args, options);
}

Finished good(Finished done) {
  INFO(done.out << done.err);
  REQUIRE(done.status == 0);
  return done;
}

std::string text_of(const fs::path& file) {
  std::ifstream in(file, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
}

/// A server of the runs in a folder, and its address.
class Served {
 public:
  explicit Served(const fs::path& folder, const std::string& port = "0", const std::string& more = "")
      : pipe_(made_pipe(dir_ / "said")),
        process({"sh", "-c", "exec \"$0\" serve \"$1\" --port \"$2\" $4 >\"$3\"", KF_HOST, folder.string(), port, pipe_.string(), more},
                {.timeout = kPatience}),
        said_(pipe_) {
    std::string line;
    REQUIRE(std::getline(said_, line));  // ends, too, where the program does
    INFO(line);
    REQUIRE(line.find("http://") != std::string::npos);
    address = line.substr(line.find("http://"));
  }

 private:
  static fs::path made_pipe(fs::path path) {
    REQUIRE(::mkfifo(path.c_str(), 0600) == 0);
    return path;
  }
  TempDir dir_;
  fs::path pipe_;

 public:
  Process process;
  std::string address;

 private:
  std::ifstream said_;
};

bool cannot_browse() {
  const char* const named = std::getenv("KF_CHROMIUM");
  const fs::path packages = named != nullptr ? fs::path(named) : fs::path(KF_SOURCE_DIR) / ".deps/chromium";
  const bool none = !fs::exists(packages / "usr/lib/chromium/chromium") && run({"sh", "-c", "command -v chromium"}).status != 0;
  if (none) {
    std::cerr << "skipped: there is no chromium in " << packages << "; scripts/chromium.sh fetches it where there is a network\n";
  }
  return none;
}

/// A script of tests/e2e with what it needs to know.
Finished python(const std::string& script, std::vector<std::string> args) {
  args.insert(args.begin(), {"python3", (fs::path(KF_SOURCE_DIR) / "tests/e2e" / script).string()});
  Options options;
  options.timeout = kPatience;
  return run(args, options);
}

}  // namespace

TEST_CASE("report: one page has several runs, whole and without a network", "[report]") {
  const TempDir dir;
  made_run(dir, "runs/a", 40);
  made_run(dir, "runs/b", 60, "[optimizer]\nlr = 0.002\n");
  const Finished done = good(host(dir.path(), {"report", "a", "runs/b", "-o", "x.html"}));
  CHECK_THAT(done.out, Contains("x.html: 2 runs"));
  const std::string page = text_of(dir / "x.html");
  CHECK_THAT(page, Contains("\"label\":\"a\"") && Contains("\"label\":\"b\"") && Contains("\"eval.loss\"") &&
                       Contains("[\"optimizer.lr\",\"0.002\"]"));
  CHECK_THAT(page, Contains("\"torch\"") && Contains("What is minimised"));
  CHECK(page.find("https://") == std::string::npos);
  good(host(dir.path(), {"report", "runs"}));  // a folder with runs
  CHECK_THAT(text_of(dir / "report.html"), Contains("<title>runs</title>"));
  CHECK_THAT(good(host(dir.path(), {"report", "runs/a", "-o", "-"})).out, Contains("<title>a</title>"));
}

TEST_CASE("report: what is no run is told, and nothing is written", "[report]") {
  const TempDir dir;
  made_run(dir, "runs/alpha", 2);
  fs::create_directories(dir / "empty");
  const Finished none = host(dir.path(), {"report", "runs/alpah"});
  CHECK(none.status == 2);
  CHECK_THAT(none.err, Contains("alpha"));
  const Finished empty = host(dir.path(), {"report", "empty"});
  CHECK(empty.status == 2);
  CHECK_THAT(empty.err, Contains("there are no runs in"));
  CHECK(host(dir.path(), {"report"}).status == 2);
  const Finished folder = host(dir.path(), {"report", "runs/alpha", "-o", "empty"});
  CHECK(folder.status == 2);
  CHECK_THAT(folder.err, Contains("-o: empty is a folder"));
  CHECK_FALSE(fs::exists(dir / "report.html"));
}

TEST_CASE("report: -o keeps what is there: links, pipes, and files that are no page", "[report]") {
  const TempDir dir;
  made_run(dir, "runs/a", 2);
  const std::string rows = text_of(dir / "runs/a/metrics.jsonl");
  const Finished record = host(dir.path(), {"report", "a", "-o", "runs/a/metrics.jsonl"});
  CHECK(record.status == 2);
  CHECK_THAT(record.err, Contains("runs/a/metrics.jsonl is there already and is no page"));
  CHECK(text_of(dir / "runs/a/metrics.jsonl") == rows);

  fs::create_directory(dir / "pages");
  fs::create_symlink("pages/x.html", dir / "link");
  for (int i = 0; i < 2; ++i) {  // a new file, and one that is a page
    good(host(dir.path(), {"report", "a", "-o", "link"}));
    CHECK(fs::is_symlink(dir / "link"));
    CHECK_THAT(text_of(dir / "pages/x.html"), Contains("<title>a</title>"));
  }
  REQUIRE(::mkfifo((dir / "pipe").c_str(), 0600) == 0);
  const Finished piped = good(run({"sh", "-c", "cat pipe & '" + std::string(KF_HOST) + "' report a -o pipe; wait"}, {.cwd = dir.path()}));
  CHECK_THAT(piped.out, Contains("<title>a</title>"));
  CHECK(fs::is_fifo(dir / "pipe"));
  const Finished full = host(dir.path(), {"report", "a", "-o", "/dev/full"});
  CHECK(full.status == 1);
  CHECK_THAT(full.err, Contains("cannot write /dev/full") || Contains("cannot write \"/dev/full"));
}

TEST_CASE("report: damaged files cost what they held and nothing else", "[report]") {
  const TempDir dir;
  made_run(dir, "runs/half", 20);
  std::ofstream(dir / "runs/half/metrics.jsonl", std::ios::app) << "no row\n{\"step\":21,\"lo";
  made_run(dir, "runs/broken", 20);
  dir.write("runs/broken/run.json", "{\"id\": ");
  dir.write("runs/broken/job.toml", "[[[");
  made_run(dir, "runs/empty", 0);
  good(host(dir.path(), {"report", "runs"}));
  const std::string page = text_of(dir / "report.html");
  CHECK_THAT(page, Contains("1 of the lines of metrics.jsonl are no rows") && Contains("\"state\":\"unreadable\"") && Contains("job.toml"));
}

TEST_CASE("report: a page in a browser draws, zooms, shows values, and obeys the keyboard", "[report]") {
  if (cannot_browse()) {
    return;
  }
  const TempDir dir;
  made_run(dir, "runs/a", 300);
  made_run(dir, "runs/b", 200, "[optimizer]\nlr = 0.002\n");
  const std::string hostile = "<img src=x onerror=alert(1)>";
  made_run(dir, "runs/" + hostile, 20);
  dir.write("runs/a/artifacts/samples.json", R"([{"step": 20, "prompt": "</script><script>", "text": "alert(2)</script>"}])");
  good(host(dir.path(), {"report", "runs", "-o", "x.html"}));
  good(python("report_browser.py", {"report", "file://" + (dir / "x.html").string()}));
}

TEST_CASE("serve: the page follows runs that come, grow and go", "[report]") {
  if (cannot_browse()) {
    return;
  }
  const TempDir dir;
  fs::create_directories(dir / "runs");
  Served served(dir / "runs");
  // The script makes, lengthens and removes runs itself, from one that lies ready on the same disk.
  const fs::path ready = made_run(dir, "ready", 50);
  good(python("report_browser.py", {"follow", served.address, (dir / "runs").string(), ready.string()}));
  served.process.signal(SIGINT);
  CHECK(served.process.wait().status == 0);
}

TEST_CASE("serve: who has no token, comes by another name, or asks for other things is refused", "[report]") {
  const TempDir dir;
  made_run(dir, "runs/a", 30);
  dir.write("secret.txt", "do not read");
  Served served(dir / "runs");
  good(python("serve_faults.py", {served.address}));
  served.process.signal(SIGTERM);
  CHECK(served.process.wait().status == 0);
}

TEST_CASE("serve: a port that is taken is said, and one of a killed server is free at once", "[report]") {
  const TempDir dir;
  fs::create_directories(dir / "runs");
  std::string port;
  {
    Served served(dir / "runs");
    const std::size_t at = served.address.find("127.0.0.1:") + 10;
    port = served.address.substr(at, served.address.find('/', at) - at);
    const Finished second = host(dir.path(), {"serve", "--port", port});
    CHECK(second.status == 2);
    CHECK_THAT(second.err, Contains("port " + port + " of 127.0.0.1 cannot be taken (Address already in use)") && Contains("--port 0"));
    served.process.signal(SIGKILL);
    CHECK(served.process.wait().status == 128 + SIGKILL);
  }
  Served again(dir / "runs", port);
  CHECK_THAT(again.address, Contains(":" + port + "/"));
  const Finished nowhere = host(dir.path(), {"serve", "nothing"});
  CHECK(nowhere.status == 2);
  CHECK_THAT(nowhere.err, Contains("nothing is no folder"));
}

TEST_CASE("serve: with --steer runs that train are told to save, evaluate, learn slower and stop, and nothing else", "[report]") {
  const Toy toy;
  Live live(toy);
  Served served(toy / "runs", "0", "--steer");
  good(python("serve_steer.py", {served.address}));
  const Finished done = live.process().wait();
  CHECK(done.status == 0);
  CHECK_THAT(toy.read("runs/toy/steering.jsonl"), Contains("set_lr_scale(0.25)") && Contains("request_eval"));
}

TEST_CASE("serve: its buttons steer a run", "[report]") {
  if (cannot_browse()) {
    return;
  }
  const Toy toy;
  Live live(toy);
  Served served(toy / "runs", "0", "--steer");
  good(python("report_browser.py", {"steer", served.address}));
  const Finished done = live.process().wait();
  CHECK(done.status == 0);
  CHECK_THAT(toy.read("runs/toy/steering.jsonl"), Contains("set_lr_scale(0.25)") && Contains("request_eval") && Contains("request_save"));
}

TEST_CASE("serve: a sweep comes to the page by itself, and its trials are chosen by the keyboard, too", "[report]") {
  if (cannot_browse()) {
    return;
  }
  const Toy toy;
  toy.write("s.lua",
            "return require('kf').sweep({ base = { extends = 'toy.toml', train = { max_steps = 2 }, eval = { interval = 2, steps = 1 } },\n"
            "  space = { ['optimizer.lr'] = require('kf').choice({ 1e-3, 2e-3, 3e-3, 4e-3 }) }, method = 'grid' })\n");
  good(toy.host({"s.lua"}));
  fs::create_directories(toy / "shown");
  Served served(toy / "shown");
  good(python("report_browser.py", {"sweep", served.address, (toy / "shown").string(), (toy / "runs/s").string()}));
}
