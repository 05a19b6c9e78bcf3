// Data files of other programs, that change under a run, or that are no files: through the real program.

#include <catch2/catch.hpp>

#include <sys/stat.h>

#include <cstring>
#include <fstream>

#include "e2e/toy.h"

namespace {

using Catch::Matchers::Contains;
using kf::test::Finished;
using kf::test::Toy;
namespace fs = std::filesystem;

template <class Id>
std::string llmc(std::int32_t magic, std::int32_t version, std::int32_t count, std::uint32_t below) {
  std::vector<std::int32_t> head(256);
  head[0] = magic;
  head[1] = version;
  head[2] = count;
  std::string out(reinterpret_cast<const char*>(head.data()), 1024);
  std::uint32_t random = 1;
  for (std::int32_t i = 0; i < count; ++i) {
    random = random * 1664525 + 1013904223;
    const auto id = static_cast<Id>((random >> 8) % below);
    out.append(reinterpret_cast<const char*>(&id), sizeof(Id));
  }
  return out;
}

std::vector<std::string> on_tokens(const std::string& folder, int vocabulary, std::vector<std::string> more = {}) {
  more.insert(more.end(), {"--data.dataset_path=" + folder, "--data.file_pattern=*.bin", "--eval.enabled=false", "--train.max_steps=2",
                           "--model.dim=16", "--model.vocab_size=" + std::to_string(vocabulary)});
  return more;
}

/// Text of more than 1 MiB: mapped, not copied.
std::string large_text() {
  std::string text;
  for (int i = 0; text.size() < (std::size_t{3} << 19); ++i) {
    text += "line " + std::to_string(i * 7919 % 104729) + " of a large text\n";
  }
  return text;
}

}  // namespace

TEST_CASE("data faults: llm.c's files train on their ids, whatever the vocabulary, and refuse another type", "[data]") {
  const Toy toy;
  toy.write("n/a.bin", llmc<std::uint16_t>(20240520, 1, 5000, 50257));
  toy.write("w/a.bin", llmc<std::uint32_t>(20240801, 7, 5000, 90000));
  for (const int vocabulary : {50257, 65536}) {
    const Finished done = toy.train(on_tokens("n", vocabulary, {"--run.name=n" + std::to_string(vocabulary)}));
    INFO(done.err);
    CHECK(done.status == 0);
    CHECK_THAT(done.out + done.err, Contains("5,000 tokens (uint16)"));
  }
  const Finished wide = toy.train(on_tokens("w", 90000, {"--run.name=w"}));
  INFO(wide.err);
  CHECK(wide.status == 0);
  CHECK_THAT(wide.out + wide.err, Contains("5,000 tokens (uint32)"));
  const Finished halves = toy.train(on_tokens("w", 90000, {"--run.name=h", "--data.token_dtype=uint16"}));
  CHECK(halves.status == 5);
  CHECK_THAT(halves.err, Contains("llm.c's header says uint32, data.token_dtype says uint16"));
}

TEST_CASE("data faults: a wrong id anywhere is found before the first step", "[data]") {
  const Toy toy;
  std::string ids = llmc<std::uint16_t>(20240520, 1, 5000, 500);
  const std::uint16_t wrong = 600;
  std::memcpy(ids.data() + 1024 + 2 * 4999, &wrong, 2);  // in the tail that no window holds
  toy.write("n/a.bin", ids);
  const Finished refused = toy.train(on_tokens("n", 512));
  CHECK(refused.status == 5);
  CHECK_THAT(refused.err, Contains("a.bin: token 4999 (from 0) is id 600") && Contains("model.vocab_size = 512"));
  CHECK(!fs::exists(toy / "runs/toy"));
  CHECK(toy.train(on_tokens("n", 512, {"--data.check_ids=off"})).status == 0);
}

TEST_CASE("data faults: documents of a Megatron data set are what its index says", "[data]") {
  const Toy toy;
  std::string index("MMIDIDX\0\0", 9);
  const auto put = [&](auto value) { index.append(reinterpret_cast<const char*>(&value), sizeof(value)); };
  constexpr std::uint64_t kDocuments = 200;
  put(std::uint64_t{1});
  put(std::uint8_t{8});
  put(kDocuments);
  put(kDocuments + 1);
  std::int64_t at = 0;
  std::string ids;
  std::vector<std::int64_t> starts;
  for (std::uint64_t i = 0; i < kDocuments; ++i) {
    const auto size = static_cast<std::int32_t>(8 + i % 20);
    put(size);
    starts.push_back(2 * at);
    at += size;
    for (std::int32_t k = 0; k < size; ++k) {
      const auto id = static_cast<std::uint16_t>(1 + k);
      ids.append(reinterpret_cast<const char*>(&id), 2);
    }
  }
  for (const std::int64_t start : starts) {
    put(start);
  }
  for (std::uint64_t i = 0; i <= kDocuments; ++i) {
    put(static_cast<std::int64_t>(i));
  }
  toy.write("m/web_text_document.bin", ids);
  toy.write("m/web_text_document.idx", index);
  for (const char* method : {"best_fit", "first_fit", "pad"}) {  // no data.eos_id: the index says where documents end
    const std::string name = method;
    const Finished done = toy.train(on_tokens("m", 64, {"--run.name=" + name, "--data.pack_method=" + name}));
    INFO(done.err);
    CHECK(done.status == 0);
    CHECK_THAT(done.out + done.err, Contains(name == "pad" ? "200 sequences" : "% full"));
  }
  fs::remove(toy / "m/web_text_document.idx");
  const Finished half = toy.train(on_tokens("m", 64, {"--run.name=half"}));
  CHECK(half.status == 5);
  CHECK_THAT(half.err, Contains("half of a Megatron data set"));
}

TEST_CASE("data faults: files that changed between two starts are named", "[data]") {
  const Toy toy;
  toy.write("text/d.txt", large_text());
  const std::vector<std::string> job{"--run.name=c", "--train.max_steps=5"};
  REQUIRE(toy.train(job).status == 0);
  std::string content = toy.read("text/d.txt");
  content[content.size() / 2] = 'X';  // in the middle of a large file
  toy.write("text/d.txt", content);
  const Finished refused = toy.train({"--run.name=c"});
  CHECK(refused.status == 2);
  CHECK_THAT(refused.err, Contains("the data files (text) have changed since") && Contains("saved: d.txt"));
  toy.write("new/v.txt", std::string(3000, 'v'));
  REQUIRE(toy.train({"--run.name=e", "--train.max_steps=5", "--eval.dataset_path=new/v.txt"}).status == 0);
  toy.write("new/v.txt", std::string(3000, 'w'));
  const Finished warned = toy.train({"--run.name=e", "--eval.dataset_path=new/v.txt"});
  INFO(warned.err);
  CHECK(warned.status == 0);
  CHECK_THAT(warned.err, Contains("the evaluation data have changed since") && Contains("v.txt"));
}

TEST_CASE("data faults: a file that is written to under the run is found before the next checkpoint", "[data]") {
  const Toy toy;
  const std::string what = GENERATE(as<std::string>{}, "text", "tokens", "evaluation", "cache");
  CAPTURE(what);
  toy.write("text/large.txt", large_text());
  toy.write("n/a.bin", llmc<std::uint16_t>(20240520, 1, 90000, 256));
  std::vector<std::string> job{"--run.name=o"};
  std::string file = "text/large.txt";
  if (what == "tokens") {
    file = "n/a.bin";
    job.insert(job.end(), {"--data.dataset_path=n", "--data.file_pattern=*.bin"});
  } else if (what == "evaluation") {
    fs::rename(toy / "text/large.txt", toy / "v.txt");
    file = "v.txt";
    job.emplace_back("--eval.dataset_path=v.txt");
  } else if (what == "cache") {
    job.emplace_back("--eval.enabled=false");
    toy.write("text/d.jsonl", "{\"text\": \"" + std::string(20000, 'x') + "\"}\n");
    job.emplace_back("--data.file_pattern=*.jsonl");
    file = "";  // the shard, below
  }
  toy.write("over.lua", R"(
    local kf = require("kf")
    return { extends = "toy.toml", hooks = { { on_step_end = function(ctx)
      if ctx.step ~= 2 then return end
      local path = kf.args[1]
      if path == "" then
        local p = io.popen("ls .kf-cache/*/ids-00000.npy")
        path = p:read("*l")
        p:close()
      end
      local f = assert(io.open(path, "r+b"))
      f:seek("set", 2000)
      f:write(("a"):rep(500))
      f:close()
    end } } })");
  std::vector<std::string> call{"over.lua"};
  call.insert(call.end(), job.begin(), job.end());
  call.insert(call.end(), {"--", file});
  const Finished done = toy.host(call);
  INFO(done.out << done.err);
  CHECK(done.status == 5);
  CHECK_THAT(done.err, Contains("the data changed under the run") && Contains(what == "cache" ? "ids-00000.npy" : file));
  CHECK(!fs::exists(toy / "runs/o/checkpoints/step_5"));
}

TEST_CASE("data faults: data that are removed or replaced under the run are as they were, and it is said", "[data]") {
  const Toy toy;
  toy.write("text/large.txt", large_text());
  toy.write("gone.lua", R"(
    local kf = require("kf")
    return { extends = "toy.toml", run = { name = kf.args[1] }, hooks = { { on_step_end = function(ctx)
      if ctx.step == 2 and kf.args[1] == "gone" then os.remove("text/large.txt") end
    end } } })");
  REQUIRE(toy.host({"gone.lua", "--", "calm"}).status == 0);
  const Finished done = toy.host({"gone.lua", "--", "gone"});
  INFO(done.err);
  CHECK(done.status == 0);
  CHECK_THAT(done.err, Contains("text/large.txt (removed") && Contains("the next start will not"));
  CHECK(toy.series("gone", "loss") == toy.series("calm", "loss"));
}

TEST_CASE("data faults: what is no regular file is refused at once, wherever a file is read", "[data]") {
  const Toy toy;
  REQUIRE(::mkfifo((toy / "pipe.toml").c_str(), 0600) == 0);
  REQUIRE(::mkfifo((toy / "pipe.lua").c_str(), 0600) == 0);
  REQUIRE(::mkfifo((toy / "pipe.json").c_str(), 0600) == 0);
  REQUIRE(::mkfifo((toy / "pipe.txt").c_str(), 0600) == 0);
  fs::create_symlink("/dev/zero", toy / "zero.toml");
  toy.write("ext.toml", "extends = \"pipe.toml\"\n");
  toy.write("hole.toml", "");
  fs::resize_file(toy / "hole.toml", std::uintmax_t{5} << 30);
  REQUIRE(toy.train({"--train.max_steps=1"}).status == 0);
  const auto refused = [&](int status, const std::vector<std::string>& args, const std::string& words) {
    kf::test::Options options;
    options.cwd = toy.folder();
    const Finished done = kf::test::run(toy.command(args), options);
    INFO(kf::test::Options().cwd << done.out << done.err);
    CAPTURE(args);
    CHECK(!done.timed_out);
    CHECK(done.status == status);
    CHECK_THAT(done.out + done.err, Contains(words));
  };
  refused(2, {"pipe.toml"}, "a pipe, not a regular file");
  refused(2, {"zero.toml"}, "is a device");
  refused(2, {"ext.toml"}, "a pipe, not a regular file");
  refused(2, {"hole.toml"}, "5368709120 bytes");
  refused(3, {"pipe.lua"}, "a pipe");
  refused(3, {"lua", "pipe.lua"}, "a pipe");
  refused(2, {"config", "check", "pipe.toml"}, "a pipe");
  refused(5, {"toy.toml", "--data.tokenizer_path=pipe.json"}, "a pipe");
  refused(5, {"tokenizer", "info", "pipe.json"}, "a pipe");
  refused(5, {"tokenizer", "encode", "bytes", "--file", "pipe.txt"}, "a pipe");
  refused(5, {"tokenizer", "train", "pipe.txt", "--vocab-size", "300", "--out", "t"}, "regular file");
  refused(5, {"generate", "runs/toy", "--prompts", "pipe.json"}, "a pipe");
  refused(3, {"generate", "runs/toy", "--prompt", "a", "--script", "pipe.lua"}, "a pipe");
  refused(5, {"eval", "runs/toy", "--choices", "pipe.json"}, "a pipe");
  refused(5, {"eval", "runs/toy", "--data", "pipe.txt"}, "pipe");
  refused(5, {"toy.toml", "--run.name=p", "--data.dataset_path=pipe.txt"}, "pipe");
  refused(5, {"toy.toml", "--run.name=q", "--eval.dataset_path=pipe.txt"}, "pipe");
  refused(6, {"toy.toml", "--run.name=r", "--checkpoint.init_from=pipe.json"}, "regular file");
  refused(5, {"data", "info", "pipe.txt"}, "pipe");
  // A device is no better, nor a folder without what is wanted of it, nor a file that is not there.
  refused(5, {"toy.toml", "--run.name=d", "--data.tokenizer_path=/dev/zero"}, "/dev/zero");
  refused(5, {"tokenizer", "encode", "bytes", "--file", "/dev/null"}, "/dev/null");
  refused(5, {"tokenizer", "encode", "bytes", "--file", "none.txt"}, "none.txt");
  refused(5, {"generate", "runs/toy", "--prompts", "/dev/zero"}, "/dev/zero");
  refused(5, {"generate", "runs/toy", "--prompts", "text"}, "text");
  refused(5, {"eval", "runs/toy", "--choices", "/dev/null"}, "/dev/null");
  refused(5, {"eval", "runs/toy", "--documents", "/dev/zero"}, "/dev/zero");
  refused(5, {"eval", "runs/toy", "--data", "/dev/zero"}, "/dev/zero");
  refused(5, {"toy.toml", "--run.name=e", "--data.chat_template=pipe.json", "--data.messages_field=m"}, "pipe");
  refused(2, {"config", "show", "--model.preset=pipe.json"}, "pipe.json");
}

TEST_CASE("data faults: a record that is too long is named with its place and the setting", "[data]") {
  const Toy toy;
  const std::string line = "{\"text\": \"" + std::string(3000, 'x') + "\"}\n";
  toy.write("r/a.jsonl", "{\"text\": \"a\"}\n" + line);
  toy.write("r/a.json", "[{\"text\": \"a\"},\n" + line + "]");
  toy.write("r/a.csv", "text\na\n" + std::string(3000, 'x') + "\n");
  for (const char* file : {"r/a.jsonl", "r/a.json", "r/a.csv"}) {
    CAPTURE(file);
    const Finished done = toy.host({"data", "info", file, "--data.max_record_bytes=1000"});
    CHECK(done.status == 5);
    CHECK_THAT(done.err, Contains(file) && Contains("data.max_record_bytes"));
    CHECK(toy.host({"data", "info", file}).status == 0);
  }
}

TEST_CASE("data faults: relative paths are looked for beside the job, too", "[data]") {
  const Toy toy;
  const std::string job = toy.read("toy.toml");
  toy.write("far/jobs/data/a.txt", std::string(9000, 'a'));
  toy.write("far/jobs/travels.toml", "extends = \"../../toy.toml\"\n[data]\ndataset_path = \"data\"\n[eval]\nenabled = false\n");
  toy.write("far/jobs/glob.toml", "extends = \"travels.toml\"\n[data]\ndataset_path = \"data/*.txt\"\n");
  toy.write("far/jobs/mix.toml", "extends = \"travels.toml\"\n[[data.datasets]]\npath = \"data/a.txt\"\n");
  toy.write("far/recipe.lua", "return { extends = '../toy.toml', data = { dataset_path = 'jobs/data' }, eval = { enabled = false } }");
  for (const char* file : {"far/jobs/travels.toml", "far/jobs/glob.toml", "far/jobs/mix.toml", "far/recipe.lua"}) {
    CAPTURE(file);
    const Finished done = toy.host({file, "--train.max_steps=1"});
    INFO(done.err);
    CHECK(done.status == 0);
    CHECK_THAT(done.out + done.err, Contains("9,001 tokens"));
  }
  CHECK_THAT(toy.read("runs/travels/job.toml"), Contains("dataset_path = \"far/jobs/data\""));
  // Both are there: the working folder's, and a word about it.
  toy.write("data/b.txt", std::string(7000, 'b'));
  const Finished both = toy.host({"far/jobs/travels.toml", "--run.name=both", "--train.max_steps=1"});
  CHECK(both.status == 0);
  CHECK_THAT(both.out + both.err, Contains("7,001 tokens"));
  CHECK_THAT(both.err, Contains("data.dataset_path = \"data\"") && Contains("the one below the working folder is taken"));
  // The command line's start at the working folder alone.
  const Finished none = toy.host({"far/jobs/travels.toml", "--data.dataset_path=a.txt"});
  CHECK(none.status == 2);
  CHECK_THAT(none.err, Contains("relative paths start at the working folder"));
}
