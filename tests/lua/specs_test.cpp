// Every *_spec.lua of this folder, through `kf-host test`; and the runner's own behaviour.
#include <algorithm>
#include <filesystem>

#include "support/process.h"
#include "support/temp_dir.h"

#include <catch2/catch.hpp>

using kf::test::Finished;
using kf::test::TempDir;

namespace {

Finished host(std::vector<std::string> arguments, std::filesystem::path cwd = {}, std::string in = {}) {
  arguments.insert(arguments.begin(), KF_HOST);
  kf::test::Options options;
  options.cwd = std::move(cwd);
  options.in = std::move(in);
  return kf::test::run(arguments, options);
}

std::vector<std::string> specs() {
  std::vector<std::string> files;
  for (const auto& entry : std::filesystem::directory_iterator(KF_SOURCE_DIR "/tests/lua")) {
    if (entry.path().string().ends_with("_spec.lua")) {
      files.push_back(entry.path().string());
    }
  }
  std::sort(files.begin(), files.end());
  return files;
}

}  // namespace

TEST_CASE("lua: every spec passes", "[lua]") {
  REQUIRE(specs().size() >= 3);
  for (const std::string& file : specs()) {
    const TempDir folder;
    const Finished done = host({"test", file}, folder.path());
    CAPTURE(file, done.out, done.err);
    CHECK(done.status == 0);
  }
}

TEST_CASE("lua test: a failing test is named with its line, the others go on, and the status is 3", "[lua]") {
  const TempDir folder;
  folder.write("a_spec.lua",
               "local T = require('kf.test')\nT.test('one', function()\n  T.eq(1, 2)\nend)\nT.test('two', function() end)\n"
               "T.test('three', function() local t = nil; return t.x end)\n");
  const Finished done = host({"test", "a_spec.lua"}, folder.path());
  CHECK(done.status == 3);
  CHECK(done.out.find("FAIL  one\n        a_spec.lua:3: not equal, value: 1 and 2") != std::string::npos);
  CHECK(done.out.find("ok    two") != std::string::npos);
  CHECK(done.out.find("a_spec.lua:6: attempt to index") != std::string::npos);
  CHECK(done.out.find("1 passed, 2 failed") != std::string::npos);
}

TEST_CASE("lua test: a file without tests, and one that fails outside of them, count as failures", "[lua]") {
  const TempDir folder;
  folder.write("none_spec.lua", "return 1");
  folder.write("broken_spec.lua", "error('at load')");
  CHECK(host({"test", "none_spec.lua"}, folder.path()).status == 3);
  const Finished done = host({"test", "broken_spec.lua"}, folder.path());
  CHECK(done.status == 3);
  CHECK(done.err.find("broken_spec.lua:1: at load") != std::string::npos);
}

TEST_CASE("lua test: runs without a name begin anew with every start of the tests, and leave nothing behind", "[lua]") {
  const TempDir folder;
  const std::string spec =
      "local kf, T = require('kf'), require('kf.test')\nT.test('trains', function()\n  local r = kf.run({ model = { dim = 16, n_layers = "
      "1, "
      "n_heads = 2, vocab_size = 64, max_seq_len = 8 }, train = { max_steps = 2, batch_size = 1, seq_len = 8 }, scheduler = { warmup_steps "
      "= 1 } "
      "})\n  T.eq(r.steps, 2)\n  T.eq(#r.history > 0, true)\n  T.ok(io.open(r.checkpoint .. '/state.json'))\nend)\n";
  for (const std::string last : {"", "-- another text\n"}) {
    folder.write("r_spec.lua", spec + last);
    const Finished done = host({"test", "r_spec.lua"}, folder.path());
    CAPTURE(done.out, done.err);
    CHECK(done.status == 0);
  }
  CHECK(!std::filesystem::exists(folder / "runs"));
}

TEST_CASE("lua: the interpreter runs chunks, files and what is typed", "[lua]") {
  const TempDir folder;
  CHECK(host({"lua", "-e", "print(require('kf').ones({ 2 }):sum():item())"}, folder.path()).out == "2\n");
  folder.write("x.lua", "print(require('kf').args[1])");
  CHECK(host({"lua", "x.lua", "--", "word"}, folder.path()).out == "word\n");
  const Finished typed =
      host({"lua", "-i"}, folder.path(), "1 + 1\nfor i = 1, 2 do\nprint(i)\nend\nkf.arange(3)\n{ b = 1, 2 }\nnil + 1\nx = 3\nx\n");
  CHECK(typed.status == 0);
  CHECK(typed.out == "2\n1\n2\ntensor([0, 1, 2])\n{ 2, b = 1 }\n3\n");
  CHECK(typed.err.find("attempt to perform arithmetic on a nil value") != std::string::npos);
  CHECK(host({"lua", "-e", "error('no')"}, folder.path()).status == 3);
}

TEST_CASE("lua: the example scripts run as they stand", "[lua]") {
  const std::filesystem::path examples = KF_SOURCE_DIR "/examples/scripts";
  const std::string script = GENERATE(as<std::string>{}, "mlp.lua", "block.lua", "optimizer.lua", "loss.lua", "distil.lua");
  const TempDir folder;
  const Finished done = host({(examples / script).string()}, folder.path());
  CAPTURE(script, done.out, done.err);
  CHECK(done.status == 0);
}

TEST_CASE("lua: the example of tests passes", "[lua]") {
  const TempDir folder;
  CHECK(host({"test", KF_SOURCE_DIR "/examples/scripts/tensors_spec.lua"}, folder.path()).status == 0);
}
