// Where exports are written: places that have to stay, disks without room, folders of somebody else.

#include <catch2/catch.hpp>

#include <sys/mount.h>
#include <unistd.h>

#include <iostream>
#include <iterator>
#include <set>
#include <string>
#include <vector>

#include "e2e/toy.h"

namespace fs = std::filesystem;
using kf::test::Finished;
using kf::test::Toy;

namespace {

Finished good(Finished done) {
  INFO(done.out << done.err);
  REQUIRE(done.status == 0);
  return done;
}

bool has(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

std::string text_of(const Toy& toy, const std::string& model) {
  return good(toy.host({"generate", model, "--prompt", "line 3", "--temperature", "0", "--max-new-tokens", "12"})).out;
}

}  // namespace

TEST_CASE("export: a place that has to stay is filled: the current folder, and one that is mounted", "[export]") {
  const Toy toy;
  good(toy.train({"--run.name=a", "--train.max_steps=1", "--scheduler.warmup_steps=0", "--checkpoint.interval=1"}));
  const auto shell = [&](const std::string& line) {
    kf::test::Options options;
    options.cwd = toy.folder();
    options.env = {{"KF", toy.command({}).front()}};
    return kf::test::run({"sh", "-c", line}, options);
  };
  good(toy.host({"export", "runs/a", "other"}));
  good(shell("mkdir here && cd here && \"$KF\" export ../runs/a . && test -e config.json"));
  CHECK(toy.read("here/model.safetensors") == toy.read("other/model.safetensors"));
  // Again, in shards and back: nothing of what was there before is left, but for what is its user's.
  toy.write("here/notes/a.txt", "mine");
  toy.write("here/.written.tmp-99999999/model.safetensors", "of a process that was killed");
  good(shell("cd here && \"$KF\" export ../runs/a . --max-shard-size 20KB && test -e model.safetensors.index.json"));
  CHECK_FALSE(fs::exists(toy / "here/model.safetensors"));
  CHECK(text_of(toy, "here") == text_of(toy, "other"));
  good(shell("cd here && \"$KF\" export ../runs/a ."));
  CHECK(toy.read("here/notes/a.txt") == "mine");
  const auto names = [&](const char* folder) {
    std::set<std::string> out;
    for (const auto& entry : fs::directory_iterator(toy / folder)) {
      out.insert(entry.path().filename().string());
    }
    out.erase("notes");
    return out;
  };
  CHECK(names("here") == names("other"));
  CHECK(shell("cd other && \"$KF\" export ../runs/a ../here").status == 0);  // an export may lie anywhere else, too

  fs::create_directories(toy / "disk");
  if (::mount("tmpfs", (toy / "disk").c_str(), "tmpfs", 0, "size=4m") != 0) {
    std::cerr << "skipped: this process may mount nothing, so no export goes into such a place\n";
    return;
  }
  const Finished mounted = toy.host({"export", "runs/a", "disk"});
  const std::set<std::string> there = names("disk");
  const Finished again = toy.host({"export", "runs/a", "disk", "--dtype", "float32"});
  const bool wide = again.status == 0 && has(toy.read("disk/config.json"), "\"dtype\": \"float32\"");
  ::umount2((toy / "disk").c_str(), MNT_DETACH);
  INFO(mounted.err << again.err);
  CHECK(mounted.status == 0);
  CHECK(there == names("other"));
  CHECK(wide);
}

TEST_CASE("export: a disk without room is said, and neither half an export nor a change of the earlier one stays", "[export]") {
  const Toy toy;
  good(toy.train({"--run.name=a", "--train.max_steps=1", "--scheduler.warmup_steps=0", "--checkpoint.interval=1"}));
  good(toy.host({"export", "runs/a", "out"}));
  const std::string before = toy.read("out/model.safetensors");
  const auto limited = [&](const std::string& words) {
    kf::test::Options options;
    options.cwd = toy.folder();
    options.env = {{"KF", toy.command({}).front()}};
    // A write behind 20 KB of a file fails then.
    return kf::test::run({"bash", "-c", "trap '' XFSZ; ulimit -f 20; exec \"$KF\" " + words}, options);
  };
  for (const char* words : {"export runs/a out", "export runs/a new", "export runs/a new.gguf --dtype F32"}) {
    CAPTURE(words);
    const Finished done = limited(words);
    INFO(done.err);
    CHECK(done.status == 6);
    CHECK(has(done.err, "cannot write"));
    CHECK(has(done.err, "File too large"));
  }
  CHECK(toy.read("out/model.safetensors") == before);
  for (const auto& entry : fs::directory_iterator(toy.folder())) {
    const std::string name = entry.path().filename().string();
    CHECK_FALSE((has(name, ".tmp") || name.starts_with("new")));
  }
}

TEST_CASE("export: adapters and merged weights take no place that is another's", "[export]") {
  const Toy toy;
  good(toy.train({"--run.name=a", "--adapter.name=lora", "--adapter.rank=2", "--train.max_steps=2"}));
  toy.write("mine/notes.txt", "mine");
  const auto refused = [&](const std::vector<std::string>& words, const std::string& part) {
    const Finished done = toy.host(words);
    INFO(done.err);
    CHECK(done.status != 0);
    CHECK(has(done.err, part));
  };
  refused({"export", "runs/a", "mine", "--adapter"}, "is there and holds no adapter");
  refused({"adapter", "export", "runs/a", "runs/a"}, "is there and holds no adapter");
  for (const char* place : {"mine", "runs/a", "runs/a/checkpoints/step_2", "runs/a/checkpoints/latest", "."}) {
    refused({"adapter", "export", "runs/a", place, "--merged"}, "exists; choose another name, or remove it");
    refused({"checkpoint", "merge-lora", "runs/a", place}, "exists; choose another name, or remove it");
  }
  CHECK(toy.read("mine/notes.txt") == "mine");
  // What another process writes beside it stays.
  const std::string alive = std::to_string(::getpid());
  toy.write(".other.tmp-" + alive + "/model.safetensors", "half");
  good(toy.host({"checkpoint", "merge-lora", "runs/a", "new/a name with \xc3\xa4"}));
  CHECK(text_of(toy, "new/a name with \xc3\xa4") == text_of(toy, "runs/a"));
  good(toy.host({"adapter", "export", "runs/a", "merged/", "--merged"}));
  CHECK(fs::exists(toy / "merged/state.json"));
  CHECK(fs::exists(toy / (".other.tmp-" + alive)));
  // An earlier adapter is replaced; what lies beside it stays.
  good(toy.host({"adapter", "export", "runs/a", "peft"}));
  const std::string config = toy.read("peft/adapter_config.json"), tensors = toy.read("peft/adapter_model.safetensors");
  toy.write("peft/README.md", "mine");
  toy.write("peft/adapter_config.json", "{}");
  toy.write("peft/adapter_model.safetensors", "");
  good(toy.host({"adapter", "export", "runs/a", "peft"}));
  CHECK(toy.read("peft/adapter_config.json") == config);
  CHECK(toy.read("peft/adapter_model.safetensors") == tensors);
  CHECK(toy.read("peft/README.md") == "mine");
  CHECK(std::distance(fs::directory_iterator(toy / "peft"), fs::directory_iterator()) == 3);
}
