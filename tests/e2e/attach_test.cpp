// kf-host attach: what is said to a run while it trains.

#include <catch2/catch.hpp>

#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <thread>
#include <vector>

#include "attach/address.h"
#include "attach/client.h"
#include "attach/frame.h"
#include "core/error.h"
#include "e2e/live_run.h"
#include "e2e/script_run.h"
#include "support/process.h"

using namespace kf::test;
using Catch::Contains;
using kf::attach::Answer;
using kf::attach::Client;
using kf::attach::Frame;
namespace fs = std::filesystem;

TEST_CASE("attach: chunks see what hooks see, and looking leaves nothing behind", "[attach]") {
  const Toy toy;
  Live run(toy);
  CHECK(run.ask("return ctx.step > 0, ctx:loss() > 0, kf.dist.world") == "true\ntrue\n1\n");
  CHECK(run.ask("= 1 + 1") == "2\n");
  CHECK(run.ask("print('a', 2) io.write('b\\n')") == "a\t2\nb\n");
  CHECK(run.ask("for n, w in ctx:parameters('*embed*') do print(n, w:dim()) end") == "token_embedding.embedding.weight\t2\n");
  CHECK(run.ask("for n, g in ctx:gradients('layers.0.*') do assert(g:abs():sum():item() >= 0) end return 1") == "1\n");
  CHECK(run.ask("return kf.randn({2}):sum():item() == kf.randn({2}):sum():item()") == "false\n");
  CHECK_THAT(run.ask("return ctx:evaluate().loss > 0, ctx"), Contains("true") && Contains("ctx of step_end"));
  CHECK(entries(toy, "toy") == 0);
  const Finished done = run.stop();
  INFO(done.out << done.err);
  CHECK(done.status == 0);
  CHECK_THAT(done.err, Contains("attach: return ctx.step > 0"));
  CHECK_THAT(toy.read("runs/toy/log.txt"), Contains("attach: ctx:stop()"));
  CHECK(entries(toy, "toy") == 1);
  CHECK_FALSE(fs::exists(run.folder() / "attach.sock"));
}

TEST_CASE("attach: errors reach the prompt alone, and what a failed chunk asked for is dropped", "[attach]") {
  const Toy toy;
  Live run(toy);
  const Answer syntax = run.say("return )");
  CHECK_THAT(syntax.error, Contains("attach:1:"));
  CHECK(syntax.status == 3);
  CHECK_THAT(run.say("print('before')\nlocal x = nil\nx.y = 1").error, Contains("attach:3:"));
  CHECK(run.say("print('before') error('no')").output == "before\n");
  CHECK_THAT(run.say("ctx:no()").error, Contains("ctx has no field 'no'"));
  CHECK_THAT(run.say("ctx:set_lr_scale(0) ctx:stop() error('changed my mind')").error, Contains("changed my mind"));
  CHECK_THAT(run.say("ctx:freeze('*')").error, Contains("every weight would be frozen"));
  CHECK_THAT(run.say("os.exit(1)").error, Contains("ctx:stop()"));
  CHECK_THAT(run.say("kf.run {}").error, Contains("kf.run"));
  CHECK_THAT(run.say("kf.register.hook('x', { on_log = print })").error, Contains("registered"));
  CHECK_THAT(run.say("error({ code = 7 })").error, Contains("code = 7"));
  for (const std::string name : {"ctx", "kf", "print", "os", "_G"}) {
    CHECK_THAT(run.say(name + " = nil").error, Contains("'" + name + "' belongs to the run"));
  }
  run.ask("string.format, string.gsub, string.find, table.concat = nil");
  CHECK(run.ask("return { 'a', 2 }") == "{ \"a\", 2 }\n");
  const std::string step = run.ask("kept = {} for n, w in ctx:parameters('*') do kept[1] = w end return ctx.lr");
  CHECK(step == run.ask("return ctx.lr"));
  CHECK_THAT(run.say("return kept[1]:sum()").error, Contains("step"));  // lent for one step
  CHECK(run.stop().status == 0);
}

TEST_CASE("attach: what is set holds for the run, is recorded, and is done again by run.steering", "[attach]") {
  const Toy toy;
  Live run(toy);
  const int scaled = std::stoi(run.ask("half = 0.5; return ctx.step"));
  const int at = std::stoi(run.ask("ctx:set_lr_scale(half) return ctx.step"));
  CHECK(at > scaled);
  run.ask("ctx:request_eval() ctx:request_save('asked') return ctx:loss()");
  CHECK(fs::exists(run.folder() / "checkpoints/asked/state.json"));
  const int frozen = std::stoi(run.ask("ctx:freeze('*embed*') return ctx.step"));
  const int written = std::stoi(run.ask("for n, w in ctx:parameters('*norm*') do w:fill_(0.75) end return ctx.step"));
  run.ask("return half");  // looks
  const Finished done = run.stop();
  INFO(done.out << done.err);
  REQUIRE(done.status == 0);
  CHECK(entries(toy, "toy") == 6);
  const auto rates = toy.series("toy", "lr"), losses = toy.series("toy", "loss");
  CHECK(std::stod(rates.at(at + 1)) == Approx(std::stod(rates.at(at)) / 2));
  CHECK(rates.at(at) == rates.at(at - 1));
  CHECK(toy.series("toy", "perplexity").size() == 1);

  SECTION("again") {
    std::vector<std::string> words{"--run.name=again", "--run.steering=runs/toy/steering.jsonl"};
    words.insert(words.end(), Live::endless().begin(), Live::endless().end());
    const Finished again = toy.train(words);
    INFO(again.out << again.err);
    REQUIRE(again.status == 0);  // it was told to stop
    CHECK(toy.series("again", "loss") == losses);
    CHECK(entries(toy, "again") == 6);
  }
  SECTION("a hook that asks for the same") {
    toy.write("s.lua", "local kf = require('kf')\n" +
                           job("hooks = { { name = 'same', on_step_end = function(ctx) if ctx.step == " + std::to_string(at) +
                               " then ctx:set_lr_scale(0.5) end if ctx.step == " + std::to_string(frozen) +
                               " then ctx:freeze('*embed*') end if ctx.step == " + std::to_string(written) +
                               " then for n, w in ctx:parameters('*norm*') do w:fill_(0.75) end end end } }"));
    const Finished hooked = toy.host({"s.lua", "--train.max_steps=" + std::to_string(losses.rbegin()->first), "--scheduler.name=constant",
                                      "--scheduler.warmup_steps=0", "--eval.enabled=false", "--checkpoint.interval=100000"});
    INFO(hooked.out << hooked.err);
    REQUIRE(hooked.status == 0);
    CHECK(toy.series("s", "loss") == losses);
  }
}

TEST_CASE("attach: hooks on modules stay over steps, and end with their handle", "[attach]") {
  const Toy toy;
  Live run(toy);
  run.ask("seen = {} handle = ctx:register_forward_hook('layers.0', function(name, input, output) seen[name] = output:size() end)");
  CHECK_THAT(run.ask("return next(seen)"), Contains("layers.0"));
  run.ask("handle:remove() seen = {}");
  CHECK(run.ask("return next(seen)") == "nil\n");
  CHECK(entries(toy, "toy") >= 2);
  CHECK(run.stop().status == 0);
}

TEST_CASE("attach: entries behind the checkpoint that a run goes on from are superseded", "[attach]") {
  const Toy toy;
  Live run(toy);
  run.ask("ctx:set_lr_scale(0.5)");
  const std::string saved = run.ask("ctx:request_save() return ctx.step");
  run.ask("ctx:set_lr_scale(0.25)");
  run.ask("return ctx.step");
  run.process().signal(SIGKILL);
  run.process().wait();
  CHECK(fs::exists(run.folder() / "attach.sock"));  // nobody took it away
  CHECK(entries(toy, "toy") == 3);
  CHECK_THROWS_WITH(run.client(), Contains("has been killed"));

  Live on(toy);
  on.ask("return ctx.step");
  CHECK(nlohmann::json::parse(toy.read("runs/toy/run.json"))["starts"].back()["step"] == std::stoll(saved));
  CHECK(entries(toy, "toy") == 2);
  CHECK(on.stop().status == 0);
  CHECK(entries(toy, "toy") == 3);
  CHECK(toy.train({"--run.fresh=true"}).status == 0);
  CHECK(entries(toy, "toy") == 0);
}

TEST_CASE("attach: on two ranks a chunk runs on both, and the first one answers", "[attach]") {
  const Toy toy;
  Live run(toy, {"--nproc", "2", "toy.toml", "--train.batch_size=2", "--eval.batch_size=4"});
  CHECK(run.ask("return kf.dist.rank, kf.dist.world") == "0\n2\n");
  const Answer one = run.say("ctx:set_lr_scale(0) if kf.dist.rank == 1 then error('only here') end return 7");
  CHECK(one.output == "7\n");
  CHECK_THAT(one.error, Contains("rank 1: attach:1: only here"));
  CHECK_THAT(run.ask("return ctx:evaluate().loss > 0"), Contains("true"));
  const int at = std::stoi(run.ask("if kf.dist.rank == 1 then ctx:set_lr_scale(0.5) end return ctx.step"));
  run.ask("return 1");
  const Finished done = run.stop();
  INFO(done.out << done.err);
  CHECK(done.status == 0);
  const auto rates = toy.series("toy", "lr");
  CHECK(std::stod(rates.at(at + 1)) == Approx(std::stod(rates.at(at)) / 2));
  CHECK(entries(toy, "toy") == 2);
}

TEST_CASE("attach: an endless chunk on several ranks ends with its prompt, and the run goes on", "[attach]") {
  const Toy toy;
  const std::string where = GENERATE("true", "kf.dist.rank == 0", "kf.dist.rank == 1");
  Live run(toy, {"--nproc", "2", "toy.toml", "--train.batch_size=2", "--eval.batch_size=4"});
  Options options;
  options.cwd = toy.folder();
  Process asks(toy.command({"attach", "runs/toy", "-e", "if " + where + " then io.open('begun', 'w'):close() while true do end end"}),
               options);
  while (!fs::exists(toy / "begun")) {
    std::this_thread::sleep_for(std::chrono::milliseconds(10));  // between two looks
  }
  asks.signal(SIGINT);
  asks.wait();
  CHECK(run.ask("return 7") == "7\n");
  const Finished done = run.stop();
  INFO(done.out << done.err);
  CHECK(done.status == 0);
  CHECK_THAT(done.err, Contains("interrupted: who asked has gone away"));
  for (const auto& entry : fs::directory_iterator(toy / "runs/toy")) {
    CHECK(entry.path().extension() != ".gone");
  }
}

TEST_CASE("attach: ranks that divide the model are steered alike, and take the same course again", "[attach]") {
  const Toy toy;
  const std::string axis = GENERATE("tp", "pp");
  const std::vector<std::string> ranks{"--nproc", "2", "toy.toml", "--distributed." + axis + "=2", "--model.vocab_size=260"};
  Live run(toy, ranks);
  CHECK(run.ask("return kf.dist.rank, kf.dist.world") == "0\n2\n");
  CHECK_THAT(run.ask("return ctx:evaluate().loss > 0"), Contains("true"));
  CHECK_THAT(run.ask("local n = 0 for _, w in ctx:parameters('*') do n = n + w:numel() end return n > 0"), Contains("true"));
  const int at = std::stoi(run.ask("ctx:set_lr_scale(0.5) return ctx.step"));
  run.ask("for n, w in ctx:parameters('*norm*') do w:fill_(0.75) end ctx:freeze('*embed*')");
  run.ask("ctx:request_eval() ctx:request_save('asked')");
  CHECK(fs::exists(run.folder() / "checkpoints/asked/state.json"));
  REQUIRE(run.stop().status == 0);
  const auto rates = toy.series("toy", "lr"), losses = toy.series("toy", "loss");
  CHECK(std::stod(rates.at(at + 1)) == Approx(std::stod(rates.at(at)) / 2));
  std::vector<std::string> words = ranks;
  words.insert(words.end(), Live::endless().begin(), Live::endless().end());
  words.insert(words.end(), {"--run.name=again", "--run.steering=runs/toy/steering.jsonl"});
  const Finished again = toy.host(words);
  INFO(again.out << again.err);
  REQUIRE(again.status == 0);
  CHECK(toy.series("again", "loss") == losses);
}

TEST_CASE("attach: names of the run's variables and of what stands behind them can be asked for, which leaves nothing behind", "[attach]") {
  const ScriptRun script("script_value = { inner = { deep = 1 } }\n" + job("run = { name = 's' }"));
  Live run(script.toy, {"s.lua"}, "s");
  run.ask("mine = { first = 1, [2] = 2, ['no name'] = 3 } half = 0.5");
  const std::size_t before = entries(script.toy, "s");
  const std::string names = run.ask(kf::attach::kNamesOf);
  CHECK_THAT(names, Contains("mine") && Contains("half") && Contains("script_value") && Contains("ctx"));
  CHECK_THAT(run.ask(std::string(kf::attach::kNamesOf) + "mine"), Contains("first") && !Contains("no name"));
  CHECK_THAT(run.ask(std::string(kf::attach::kNamesOf) + "script_value.inner"), Contains("deep"));
  CHECK_THAT(run.ask(std::string(kf::attach::kNamesOf) + "nothing.at.all"), !Contains("deep"));
  CHECK(entries(script.toy, "s") == before);
  const Finished done = run.stop();
  CHECK(done.status == 0);
  CHECK_THAT(done.err, !Contains("names of"));
}

TEST_CASE("attach: the socket is its owner's, wherever the folder lies, and one at a time", "[attach]") {
  const Toy toy;
  const std::string name(200, 'n');
  Live run(toy, {"toy.toml", "--run.name=" + name}, name);
  struct stat there {};
  REQUIRE(::stat((run.folder() / "attach.sock").c_str(), &there) == 0);
  CHECK((there.st_mode & 0777) == 0600);
  CHECK_FALSE(run.ask("return ctx.step").empty());
  {
    Client first = run.client(), second = run.client();  // both are heard
    CHECK(second.ask(Frame::Kind::chunk, "return 2").output == "2\n");
    CHECK(first.ask(Frame::Kind::chunk, "return 1").output == "1\n");
  }
  if (::geteuid() == 0) {
    for (fs::path folder = run.folder(); folder != folder.root_path(); folder = folder.parent_path()) {
      ::chmod(folder.c_str(), 0755);
    }
    for (const bool open : {false, true}) {
      CAPTURE(open);
      ::chmod((run.folder() / "attach.sock").c_str(), open ? 0666 : 0600);
      const pid_t child = ::fork();
      if (child == 0) {
        const bool moved = ::chdir(run.folder().c_str()) == 0 && ::setuid(65534) == 0;
        try {
          Client(".").ask(Frame::Kind::chunk, "return 1");
        } catch (const kf::Error& e) {
          ::_exit(moved && std::string(e.what()).find("belongs to another user") != std::string::npos ? 0 : 2);
        }
        ::_exit(1);
      }
      int status = -1;
      ::waitpid(child, &status, 0);
      CHECK(WIFEXITED(status));
      CHECK(WEXITSTATUS(status) == 0);
    }
  }
  CHECK(run.stop().status == 0);
}

TEST_CASE("attach: no client holds up a run", "[attach]") {
  const Toy toy;
  Live run(toy);
  const auto connect = [&] {
    const int socket = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    REQUIRE(kf::attach::Address(run.folder()).connect(socket) == 0);
    return socket;
  };
  const auto send = [](int socket, const std::string& bytes) { return ::send(socket, bytes.data(), bytes.size(), MSG_NOSIGNAL); };
  const auto rest = [](int socket) {
    std::string out;
    char byte = 0;
    while (::recv(socket, &byte, 1, 0) == 1) {
      out += byte;
    }
    return out;
  };
  SECTION("one that sends what is no frame") {
    for (const std::string& bytes : {std::string("GET / HTTP/1.1\r\n\r\n"), std::string("e\xff\xff\xff\xff", 5), std::string(70000, 'e'),
                                     std::string("d\0\0\0\0", 5)}) {
      const int socket = connect();
      send(socket, bytes);
      CHECK_THAT(rest(socket), Contains("frame"));
      ::close(socket);
    }
  }
  SECTION("one that goes away while its chunk waits, or runs for ever") {
    for (const char* chunk : {"gone = true", "while true do end", "ctx:no()"}) {
      const int socket = connect();
      send(socket, kf::attach::to_bytes({Frame::Kind::chunk, chunk}));
      ::close(socket);
    }
    const int socket = connect();
    send(socket, kf::attach::to_bytes({Frame::Kind::chunk, "local f = io.open('began', 'w') f:close() while true do end"}));
    while (!fs::exists(toy / "began")) {
      ::usleep(1000);
    }
    ::close(socket);
  }
  SECTION("one that never reads") {
    const int socket = connect();
    for (int i = 0; i < 8; ++i) {
      send(socket, kf::attach::to_bytes({Frame::Kind::chunk, "return (('x'):rep(900000))"}));
    }
    CHECK(run.ask("return ctx.step") != run.ask("return ctx.step"));
    CHECK(run.ask("return #(('x'):rep(2000000))") == "2000000\n");
    CHECK_THAT(run.ask("print(('x'):rep(2000000))"), Contains("left out"));
    ::close(socket);
  }
  SECTION("too many of them") {
    std::vector<int> sockets;
    for (int i = 0; i < 40; ++i) {
      sockets.push_back(connect());
    }
    CHECK_THROWS_WITH(run.say("return 1"), Contains("prompts are attached"));
    for (const int socket : sockets) {
      ::close(socket);
    }
    std::string said;
    while (said.empty()) {
      try {
        said = run.say("return 1").output;
      } catch (const kf::Error&) {
      }
    }
  }
  const std::string step = run.ask("return ctx.step");
  CHECK(run.ask("return ctx.step") != step);
  CHECK(run.stop().status == 0);
}

TEST_CASE("attach: who waits at the end of a run is told", "[attach]") {
  const Toy toy;
  Live run(toy);
  Client idle = run.client();
  CHECK(run.stop().status == 0);
  CHECK_THROWS_WITH(idle.ask(Frame::Kind::chunk, "return 1"), Contains("the run is over: stopped at step"));
  CHECK_THROWS_WITH(run.client(), Contains("no kf-host trains there"));
}

TEST_CASE("attach: the command prints answers, and ends with the error's status", "[attach]") {
  const Toy toy;
  Live run(toy);
  const Finished said = toy.host({"attach", "runs/toy", "-e", "print('one')", "-e", "return 2"});
  INFO(said.out << said.err);
  CHECK(said.status == 0);
  CHECK(said.out == "one\n2\n");
  CHECK(toy.host({"attach", "toy", "-e", "return 3"}).out == "3\n");  // by its name
  const Finished failed = toy.host({"attach", "runs/toy", "-e", "ctx:no()", "-e", "print('never')"});
  CHECK(failed.status == 3);
  CHECK(failed.out.empty());
  CHECK_THAT(failed.err, Contains("ctx has no field 'no'"));
  CHECK_THAT(toy.host({"attach", "runs/toy", "-e", "return ("}).err, Contains("not finished"));
  Options typed;
  typed.cwd = toy.folder();
  typed.in = "x = ctx.step\nfor i = 1, 2 do\nprint(i)\nend\n)\nreturn x > 0\nctx:stop()\n";
  const Finished lines = kf::test::run(toy.command({"attach", "runs/toy"}), typed);
  CHECK(lines.out == "1\n2\ntrue\n");
  CHECK_THAT(lines.err, Contains("unexpected symbol"));
  CHECK(run.process().wait().status == 0);
  const Finished over = toy.host({"attach", "runs/toy", "-e", "return 1"});
  CHECK(over.status == 4);
  CHECK_THAT(over.err, Contains("no kf-host trains there"));
  CHECK_THAT(toy.host({"attach", "runs/none"}).err, Contains("there is no such folder"));
  CHECK(toy.train({"--run.name=closed", "--run.attach=false", "--train.max_steps=1"}).status == 0);
  CHECK_THAT(toy.train({"--run.name=other", "--run.steering=none"}).err, Contains("run.steering: there is no file none"));
  toy.write("said.jsonl", "{\"step\": 1}\n");
  CHECK_THAT(toy.train({"--run.name=other", "--run.steering=said.jsonl"}).err, Contains("said.jsonl:1") && Contains("this is none"));
}

TEST_CASE("attach: what has the name of the socket and is none stays, with a warning", "[attach]") {
  const Toy toy;
  fs::create_directories(toy / "runs/toy");
  toy.write("runs/toy/attach.sock", "mine");
  const Finished done = toy.train({"--train.max_steps=1"});
  CHECK(done.status == 0);
  CHECK_THAT(done.err, Contains("it is no socket"));
  CHECK(toy.read("runs/toy/attach.sock") == "mine");
}
