// A checkpoint of the first format, which tests/e2e/version_1 keeps as that program wrote it, is still gone on from. Its run, s.lua there,
// has a hook and a schedule with states, phases, an evaluation and the run's wall time, and a hook stopped it after step 4.

#include <catch2/catch.hpp>

#include <filesystem>

#include "e2e/toy.h"

namespace fs = std::filesystem;
using kf::test::Finished;
using kf::test::Toy;

namespace {

/// The run's folder as it was, in `toy`.
void lay_down(const Toy& toy) {
  const fs::path kept = KF_SOURCE_DIR "/tests/e2e/version_1";
  const auto over = fs::copy_options::recursive | fs::copy_options::overwrite_existing;
  fs::copy(kept / "s.lua", toy / "s.lua");
  fs::copy(kept / "text", toy / "text", over);
  fs::create_directories(toy / "runs/s");
  fs::copy(kept / "checkpoints", toy / "runs/s/checkpoints", over);
  fs::create_directory_symlink("step_4", toy / "runs/s/checkpoints/latest");
}

bool has(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

}  // namespace

TEST_CASE("version 1: a stopped run says why it ended", "[version_1]") {
  const Toy toy;
  lay_down(toy);
  const Finished again = toy.host({"s.lua"});
  INFO(again.out << again.err);
  CHECK(again.status == 0);
  CHECK(has(again.out, "already stopped (enough): 4 steps, 128 tokens"));
}

TEST_CASE("version 1: everything that was kept is there when the run goes on", "[version_1]") {
  const Toy toy;
  lay_down(toy);
  const Finished done = toy.host({"s.lua", "--run.go_on=true"});
  INFO(done.out << done.err);
  REQUIRE(done.status == 0);
  CHECK(has(done.err, "resumed from"));
  CHECK(has(done.out, "> the hook had seen 4 steps, and its word\n"));
  CHECK(has(done.out, "> the schedule was asked 4 times\n"));
  CHECK_FALSE(has(done.out + done.err, "phase '"));  // it goes on in the second
  const auto loss = toy.series("s", "loss");
  CHECK(loss.size() == 6);
  CHECK(loss.begin()->first == 5);
  CHECK(std::stod(toy.series("s", "lr").at(5)) == 5e-3);  // halved after four steps, and no longer by the first phase, too
  const std::string state = toy.read("runs/s/checkpoints/step_10/state.json");
  CHECK(has(state, "\"version\": 2"));
  CHECK(has(state, "\"seen\": 10"));
  CHECK(has(state, "\"began\": 1795935162.1087024"));  // the wall time's, as the first part of the run had it
  CHECK_FALSE(has(state, "\"stop\": \"enough\""));
}
