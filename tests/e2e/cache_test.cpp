// The token cache and the data commands through the real program: kills, several builders, full disks, sources that change.

#include <catch2/catch.hpp>

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <random>
#include <sstream>

#include "e2e/toy.h"

namespace fs = std::filesystem;
using Catch::Contains;
using kf::test::Finished;
using kf::test::Process;
using kf::test::Toy;

namespace {

/// JSON lines of about `bytes` in each of `files` files of a folder.
void write_corpus(const Toy& toy, const std::string& folder, int files, std::size_t bytes) {
  std::mt19937 random(7);
  for (int file = 0; file < files; ++file) {
    std::string text;
    for (int i = 0; text.size() < bytes; ++i) {
      text += "{\"text\": \"document " + std::to_string(i) + " of file " + std::to_string(file) + ":";
      for (unsigned words = random() % 60; words > 0; --words) {
        text += " w" + std::to_string(random() % 97);
      }
      text += "\"}\n";
    }
    toy.write(folder + "/" + std::to_string(file) + ".jsonl", text);
  }
}

/// The job's data are the JSON lines of `folder`, which go through the cache.
std::vector<std::string> reading(const std::string& folder, const std::vector<std::string>& more = {}) {
  std::vector<std::string> out{"--data.dataset_path=" + folder, "--data.file_pattern=*.jsonl", "--eval.enabled=false"};
  out.insert(out.end(), more.begin(), more.end());
  return out;
}

std::vector<std::string> joined(std::vector<std::string> a, const std::vector<std::string>& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

Finished build(const Toy& toy, const std::string& what, const std::vector<std::string>& more = {}) {
  return toy.host(joined({"data", "build", what}, more));
}

/// The finished caches below `.kf-cache`.
std::vector<fs::path> caches(const Toy& toy) {
  std::vector<fs::path> out;
  if (fs::exists(toy / ".kf-cache")) {
    for (const fs::directory_entry& entry : fs::directory_iterator(toy / ".kf-cache")) {
      if (fs::exists(entry.path() / "cache.json")) {
        out.push_back(entry.path());
      }
    }
  }
  return out;
}

std::string content(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

std::map<std::string, std::string> files_of(const fs::path& folder) {
  std::map<std::string, std::string> out;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder)) {
    out[entry.path().filename().string()] = content(entry.path());
  }
  return out;
}

std::uintmax_t bytes_below(const fs::path& folder) {
  std::uintmax_t bytes = 0;
  std::error_code gone;  // files come and go meanwhile
  for (fs::recursive_directory_iterator it(folder, gone), end; !gone && it != end; it.increment(gone)) {
    std::error_code missing;
    const auto size = fs::file_size(it->path(), missing);
    bytes += missing ? 0 : size;
  }
  return bytes;
}

std::size_t lines_of(const fs::path& file) {
  const std::string text = content(file);
  return static_cast<std::size_t>(std::count(text.begin(), text.end(), '\n'));
}

bool is_alive(pid_t pid) {
  std::ifstream in("/proc/" + std::to_string(pid) + "/stat");
  std::string number, name, state;
  return (in >> number >> name >> state) && state != "Z";
}

}  // namespace

TEST_CASE("cache: the first run tokenizes, the next opens what it wrote, and a changed byte is noticed (H26)", "[cache]") {
  const Toy toy;
  write_corpus(toy, "corpus", 2, 20000);
  const Finished first = toy.train(reading("corpus", {"--run.name=one"}));
  CAPTURE(first.err);
  REQUIRE(first.status == 0);
  CHECK_THAT(first.err, Contains("cache: tokenizing data.dataset_path = \"corpus\" (2 files"));
  REQUIRE(caches(toy).size() == 1);
  const Finished second = toy.train(reading("corpus", {"--run.name=two"}));
  REQUIRE(second.status == 0);
  CHECK(second.err.find("tokenizing") == std::string::npos);
  CHECK(toy.series("one", "loss") == toy.series("two", "loss"));

  std::string text = toy.read("corpus/1.jsonl");
  text[text.find("document 5")] = 'D';
  const auto time = fs::last_write_time(toy / "corpus/1.jsonl");
  toy.write("corpus/1.jsonl", text);
  fs::last_write_time(toy / "corpus/1.jsonl", time);
  const Finished changed = toy.train(reading("corpus", {"--run.name=three"}));
  REQUIRE(changed.status == 0);
  CHECK_THAT(changed.err, Contains("is tokenized again; what changed: the content of 1.jsonl (still"));
  CHECK(caches(toy).size() == 2);
  // The run that began with the earlier text does not go on with the other.
  const Finished resumed = toy.train(reading("corpus", {"--run.name=one", "--train.max_steps=20"}));
  CHECK(resumed.status == 2);
}

TEST_CASE("cache: kill -9 while the cache is built; what was finished is kept, and the result is the same to the byte", "[cache]") {
  const Toy toy;
  write_corpus(toy, "corpus", 3, 9 << 20);
  const std::vector<std::string> elsewhere{"--data.cache_dir=reference", "--data.num_workers=1"};
  REQUIRE(build(toy, "corpus", elsewhere).status == 0);
  std::map<std::string, std::string> expected;
  for (const fs::directory_entry& entry : fs::directory_iterator(toy / "reference")) {
    if (fs::exists(entry.path() / "cache.json")) {
      expected = files_of(entry.path());
    }
  }
  REQUIRE(expected.size() >= 4);
  const std::uintmax_t whole = bytes_below(toy / "reference");
  fs::copy_file(KF_FAULTY_DISK, toy / "disk.so");  // LD_PRELOAD knows no path with a blank
  std::mt19937_64 random(20);
  int killed = 0;
  for (int round = 0; round < 10 && caches(toy).empty(); ++round) {
    const std::uintmax_t until = random() % whole;
    kf::test::Options options;
    options.cwd = toy.folder();
    if (round < 2) {  // the first moments, too: before anything is durable
      options.env = {{"LD_PRELOAD", (toy / "disk.so").string()},
                     {"KF_DISK_PATH", ".kf-cache/"},
                     {"KF_DISK_CALL", "fsync"},
                     {"KF_DISK_DELAY_MS", "1000000"}};
    }
    Process process(toy.command({"data", "build", "corpus", "--data.num_workers=2"}), options);
    while (is_alive(process.pid()) && bytes_below(toy / ".kf-cache") <= (round < 2 ? 0 : until)) {
    }
    process.signal(SIGKILL);
    killed += process.wait().status == 128 + SIGKILL ? 1 : 0;
  }
  CHECK(killed >= 2);
  const Finished last = build(toy, "corpus");
  CAPTURE(last.err);
  REQUIRE(last.status == 0);
  REQUIRE(caches(toy).size() == 1);
  CHECK(files_of(caches(toy)[0]) == expected);
  CHECK(toy.host({"data", "verify", "corpus"}).status == 0);
  for (const fs::directory_entry& entry : fs::directory_iterator(toy / ".kf-cache")) {
    CHECK(entry.path().extension() != ".part");
  }
}

TEST_CASE(
    "cache: kill -9 at ten moments of a run with mixture, phases, packing and sets; the numbers are those of a straight run to the bit",
    "[cache]") {
  const Toy toy;
  write_corpus(toy, "corpus", 2, 30000);
  toy.write("mix.toml", toy.read("toy.toml") +
                            "[[data.datasets]]\nname = \"a\"\npath = \"corpus/0.jsonl\"\nweight = 0.25\n"
                            "[[data.datasets]]\nname = \"b\"\npath = \"corpus/1.jsonl\"\nweight = 0.75\n"
                            "[[data.phases]]\nstart_step = 17\ndataset_weights = { a = 0.9, b = 0.1 }\nlr_scale = 0.5\n"
                            "[[data.phases]]\nstart_step = 41\ndataset_weights = { a = 0.5, b = 0.5 }\n"
                            "[[eval.datasets]]\nname = \"x\"\npath = \"corpus/0.jsonl\"\n"
                            "[[eval.datasets]]\nname = \"y\"\npath = \"corpus/1.jsonl\"\ninterval = 14\n");
  const auto job = [&](const std::string& name) {
    return std::vector<std::string>{"mix.toml",
                                    "--run.name=" + name,
                                    "--train.max_steps=60",
                                    "--checkpoint.interval=4",
                                    "--eval.interval=7",
                                    "--data.mix_block=16",
                                    "--data.shuffle=block",
                                    "--data.shuffle_window=20",
                                    "--data.pack_method=best_fit"};
  };
  REQUIRE(toy.host(job("straight")).status == 0);
  fs::remove_all(toy / ".kf-cache");
  std::mt19937 random(21);
  std::size_t least = 0;
  for (int round = 0; round < 10; ++round) {
    kf::test::Options options;
    options.cwd = toy.folder();
    Process process(toy.command(job("killed")), options);
    least += 1 + random() % 8;
    while (is_alive(process.pid()) && lines_of(toy / "runs/killed/metrics.jsonl") < least) {
    }
    process.signal(SIGKILL);
    process.wait();
  }
  const Finished last = toy.host(job("killed"));
  CAPTURE(last.err);
  REQUIRE(last.status == 0);
  for (const char* key : {"loss", "loss/a", "loss/b", "data/b/epochs", "lr", "perplexity"}) {
    INFO(key);
    CHECK(toy.series("killed", key) == toy.series("straight", key));
  }
  CHECK(toy.series("killed", "loss").size() == 60);
  CHECK(toy.series("killed", "perplexity").size() >= 8);
  CHECK(toy.host(joined({"data", "verify"}, job("killed"))).status == 0);
}

TEST_CASE("cache: who finds another at work waits for it, and then uses what it made", "[cache]") {
  const Toy toy;
  write_corpus(toy, "corpus", 1, 20000);
  REQUIRE(build(toy, "corpus").status == 0);
  const fs::path made = caches(toy).at(0);
  const fs::path aside = toy / "aside";
  fs::rename(made, aside);
  const fs::path lock = made.string() + ".lock";
  const int fd = ::open(lock.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644);
  REQUIRE(fd >= 0);
  REQUIRE(::flock(fd, LOCK_EX) == 0);
  kf::test::Options options;
  options.cwd = toy.folder();
  Process second(toy.command({"data", "build", "corpus"}), options);
  REQUIRE(second.wait_for("another process tokenizes data.dataset_path = \"corpus\"; waiting for it"));
  fs::rename(aside, made);
  ::close(fd);
  const Finished done = second.wait();
  CHECK(done.status == 0);
  CHECK_THAT(done.out, Contains("already in"));
}

TEST_CASE("cache: four builders at once make one whole cache", "[cache]") {
  const Toy toy;
  write_corpus(toy, "corpus", 2, 2 << 20);
  kf::test::Options options;
  options.cwd = toy.folder();
  std::vector<std::unique_ptr<Process>> builders;
  for (int i = 0; i < 4; ++i) {
    builders.push_back(std::make_unique<Process>(toy.command({"data", "build", "corpus"}), options));
  }
  int built = 0;
  for (const auto& builder : builders) {
    const Finished done = builder->wait();
    CAPTURE(done.err);
    CHECK(done.status == 0);
    built += done.out.find("; built ") != std::string::npos ? 1 : 0;
  }
  CHECK(built == 1);
  CHECK(caches(toy).size() == 1);
  CHECK(toy.host({"data", "verify", "corpus"}).status == 0);
}

TEST_CASE("cache: a limit on file sizes, as a full disk, is an error that says so, and leaves nothing that is taken for whole", "[cache]") {
  const Toy toy;
  write_corpus(toy, "corpus", 1, 400000);
  std::string command = "ulimit -f 200; exec";
  for (const std::string& word : toy.command({"data", "build", "corpus"})) {
    command += " '" + word + "'";
  }
  kf::test::Options options;
  options.cwd = toy.folder();
  const Finished full = kf::test::run({"bash", "-c", command}, options);
  CHECK(full.status == 5);
  CHECK_THAT(full.err, Contains("cannot write") && Contains("File too large") && Contains("data.cache_dir"));
  CHECK(caches(toy).empty());
  CHECK(toy.host({"data", "verify", "corpus"}).status == 5);
  const Finished again = build(toy, "corpus");
  CHECK(again.status == 0);
  CHECK(toy.host({"data", "verify", "corpus"}).status == 0);
}

TEST_CASE("cache: verify finds a flipped bit and ends with 5; a cache that is not there, too", "[cache]") {
  const Toy toy;
  write_corpus(toy, "corpus", 1, 20000);
  const Finished missing = toy.host({"data", "verify", "corpus"});
  CHECK(missing.status == 5);
  CHECK_THAT(missing.out, Contains("NOT good") && Contains("kf-host data build"));
  REQUIRE(build(toy, "corpus").status == 0);
  CHECK(toy.host({"data", "verify", "corpus"}).status == 0);
  const fs::path ids = caches(toy).at(0) / "ids-00000.npy";
  std::string bytes = content(ids);
  bytes[300] = static_cast<char>(bytes[300] ^ 1);
  std::ofstream(ids, std::ios::binary) << bytes;
  const Finished damaged = toy.host({"data", "verify", "corpus"});
  CHECK(damaged.status == 5);
  CHECK_THAT(damaged.out, Contains("ids-00000.npy: the checksum is not that of what was written"));
  const Finished json = toy.host({"data", "verify", "corpus", "--format", "json"});
  CHECK(json.status == 5);
  CHECK_THAT(json.out, Contains("\"good\": false"));
}

TEST_CASE("cache: stats count documents, tokens and what was left out", "[cache]") {
  const Toy toy;
  toy.write("c.jsonl", "{\"text\": \"abc\"}\n{\"text\": \"\"}\nbroken\n{\"text\": \"defghij\"}\n");
  const Finished broken = toy.host({"data", "stats", "c.jsonl"});
  CHECK(broken.status == 5);
  CHECK_THAT(broken.err, Contains("c.jsonl:3"));
  const Finished json = toy.host({"data", "stats", "c.jsonl", "--data.on_error=skip", "--format", "json"});
  REQUIRE(json.status == 0);
  for (const char* words : {"\"documents\": 3", "\"tokens\": 13", "\"text_bytes\": 10", "\"empty\": 1", "\"skipped\": 1", "\"least\": 1",
                            "\"most\": 8", "{\"from\": 8, \"documents\": 1}"}) {
    CHECK_THAT(json.out, Contains(words));
  }
  const Finished text = toy.host({"data", "stats", "c.jsonl", "--data.on_error=skip"});
  CHECK_THAT(text.out, Contains("skipped     1 broken records, such as") && Contains("8 to 15            1  ####"));
}

TEST_CASE("cache: peek shows documents with their ends, and rows with borders and what is not learned", "[cache]") {
  const Toy toy;
  toy.write("d/c.jsonl", "{\"text\": \"first\\nline\"}\n{\"text\": \"second\"}\n{\"text\": \"a third document of some length\"}\n");
  const Finished peek =
      toy.host(joined({"data", "peek", "toy.toml", "--rows=1", "--documents=2"},
                      reading("d", {"--data.pack_sequences=true", "--train.batch_size=1", "--train.grad_accum_steps=1"})));
  CAPTURE(peek.err);
  REQUIRE(peek.status == 0);
  CHECK_THAT(peek.out, Contains("document 0, 11 tokens\nfirst\\nline<end>\ndocument 1, 7 tokens\nsecond<end>\nrows as"));
  CHECK_THAT(peek.out, Contains("[f]irst\\nline<end>|[s]econd<end>|[a] third"));
  CHECK(peek.out.find('\x1b') == std::string::npos);
}

TEST_CASE("cache: old ones are listed and removed, those in use and other folders are not", "[cache]") {
  const Toy toy;
  write_corpus(toy, "corpus", 1, 20000);
  write_corpus(toy, "other", 1, 10000);
  REQUIRE(build(toy, "corpus").status == 0);
  const fs::path used = caches(toy).at(0);
  REQUIRE(build(toy, "other").status == 0);
  toy.write(".kf-cache/notes/cache.json", "{}");
  const std::string unfinished = std::string(32, 'a') + ".part";
  toy.write(".kf-cache/" + unfinished + "/ids-00000.npy", std::string(5000, 'x'));
  const fs::path odd = toy / ".kf-cache" / std::string(32, 'b');
  fs::create_directory(odd);
  REQUIRE(::mkfifo((odd / "cache.json").c_str(), 0666) == 0);  // no file: whoever reads it waits for ever
  fs::create_directory_symlink(toy / "corpus", toy / ".kf-cache" / std::string(32, 'c'));

  kf::test::Options options;
  options.cwd = toy.folder();
  Process run(toy.command(joined({"toy.toml"}, reading("corpus", {"--train.max_steps=100000", "--checkpoint.interval=100000"}))), options);
  while (is_alive(run.pid()) && lines_of(toy / "runs/toy/metrics.jsonl") == 0) {
  }
  const auto list = [&] { return nlohmann::json::parse(toy.host({"data", "cache", "--format=json"}).out)["caches"]; };
  const auto in_use = [&](const std::string& key) {
    const nlohmann::json all = list();
    const auto entry = std::find_if(all.begin(), all.end(), [&](const nlohmann::json& row) { return row["key"] == key; });
    REQUIRE(entry != all.end());
    return entry->at("in_use").get<bool>();
  };
  CHECK(list().size() == 4);
  CHECK(in_use(used.filename().string()));
  CHECK_THAT(toy.host({"data", "cache"}).out, Contains("(in use)") && Contains("0.jsonl, bytes") && Contains("4 caches"));
  CHECK_THAT(toy.host({"data", "cache", "prune"}).out, Contains("removed 0 caches"));  // all were used today
  CHECK_THAT(toy.host({"data", "cache", "prune", "--unused-days=0", "--dry-run"}).out, Contains("would remove 3 caches"));
  CHECK(fs::exists(odd));
  CHECK_THAT(toy.host({"data", "cache", "prune", "--unused-days=0"}).out, Contains("removed 3 caches"));
  CHECK_FALSE(fs::exists(toy / ".kf-cache" / (std::string(32, 'a') + ".lock")));
  CHECK(fs::exists(toy / "corpus/0.jsonl"));
  CHECK(fs::exists(used / "cache.json"));
  CHECK_FALSE(fs::exists(toy / ".kf-cache" / unfinished));
  CHECK(fs::exists(toy / ".kf-cache/notes"));
  run.signal(SIGKILL);
  run.wait();
  fs::last_write_time(used / "cache.json", fs::file_time_type::clock::now() - std::chrono::hours(24 * 8));
  CHECK_THAT(toy.host({"data", "cache", "prune", "--unused-days=9"}).out, Contains("removed 0 caches"));
  REQUIRE(build(toy, "corpus").status == 0);  // a use
  CHECK_THAT(toy.host({"data", "cache", "prune", "--unused-days=7"}).out, Contains("removed 0 caches"));
  fs::last_write_time(used / "cache.json", fs::file_time_type::clock::now() - std::chrono::hours(24 * 8));
  CHECK_THAT(toy.host({"data", "cache", "prune", "--unused-days=7"}).out, Contains("removed 1 cache,"));
  CHECK_FALSE(fs::exists(used));
  CHECK(toy.host({"data", "cache", "--dir=nowhere"}).status == 5);
  CHECK(toy.host({"data", "cache", "purge"}).status == 2);
}

TEST_CASE("cache: transforms in Lua are part of what a cache is made from; their text is", "[cache]") {
  const Toy toy;
  write_corpus(toy, "corpus", 1, 20000);
  const auto script = [](const std::string& body) {
    return "local kf = require('kf')\n"
           "kf.register.transform('edit', function(a) return function(doc) " +
           body +
           " end end, { fields = { { 'least', 'int', default = 1 } } })\n"
           "return { extends = 'toy.toml', eval = { enabled = false },\n"
           "  data = { datasets = { { name = 'c', path = 'corpus', file_pattern = '*.jsonl', transforms = { 'edit' } } } } }\n";
  };
  toy.write("job.lua", script("doc.text = doc.text:upper() return doc"));
  const auto tokenizes = [&](const std::vector<std::string>& more) {
    const Finished run = build(toy, "job.lua", more);
    CAPTURE(run.err);
    CHECK(run.status == 0);
    return run.err.find("cache: tokenizing") != std::string::npos;
  };
  CHECK(tokenizes({}));
  CHECK_FALSE(tokenizes({}));
  CHECK(tokenizes({"--transform.edit.least=3"}));
  toy.write("job.lua", script("if #doc.text < 60 then return nil end return doc"));
  CHECK(tokenizes({}));
  const Finished peek = toy.host({"data", "peek", "job.lua", "--documents=1", "--rows=0"});
  CHECK_THAT(peek.out, Contains("document 0") && Contains("of file 0"));
}

TEST_CASE("cache: config check finds what a run would refuse of its files", "[cache]") {
  const Toy toy;
  write_corpus(toy, "corpus", 1, 2000);
  CHECK(toy.host(joined({"config", "check", "toy.toml"}, reading("corpus"))).status == 0);
  const Finished none = toy.host({"config", "check", "toy.toml", "--data.file_pattern=*.parquet"});
  CHECK(none.status == 5);
  CHECK_THAT(none.err, Contains("no files match data.file_pattern = \"*.parquet\""));
  CHECK(toy.host({"config", "check", "toy.toml", "--data.dataset_path=text/*.txt"}).status == 0);
  CHECK(toy.host({"config", "check", "toy.toml", "--data.dataset_path=text/*.none"}).status == 5);
  CHECK(toy.host({"config", "check", "toy.toml", "--data.dataset_path=nowhere"}).status == 2);
}

TEST_CASE("cache: limits hold for text and for token files, and the hold-out is taken from what they leave", "[cache]") {
  const Toy toy;
  write_corpus(toy, "corpus", 1, 20000);
  const Finished few = toy.train(reading("corpus", {"--data.max_documents=20", "--run.name=few"}));
  CAPTURE(few.err);
  REQUIRE(few.status == 0);
  CHECK_THAT(few.err, Contains("cache: 20 documents"));
  const Finished short_one = toy.train(reading("corpus", {"--data.max_tokens=20"}));
  CHECK(short_one.status == 5);
  CHECK_THAT(short_one.err, Contains("data.max_tokens = 20 is less than a window of 33"));
  const Finished text = toy.train({"--data.max_tokens=3300", "--run.name=text", "--eval.enabled=false"});
  REQUIRE(text.status == 0);
}

TEST_CASE("cache: one changed merge in tokenizer.json, same name and size, makes another cache (H26)", "[cache]") {
  const Toy toy;
  write_corpus(toy, "corpus", 1, 20000);
  const Finished trained = toy.host({"tokenizer", "train", "text/a.txt", "--vocab-size", "300", "--out", "tok"});
  CAPTURE(trained.err);
  REQUIRE(trained.status == 0);
  const std::vector<std::string> settings{"--data.tokenizer_path=tok"};
  const Finished first = build(toy, "corpus", settings);
  CAPTURE(first.err);
  REQUIRE(first.status == 0);
  CHECK(build(toy, "corpus", settings).err.find("tokenizing") == std::string::npos);
  auto json = nlohmann::ordered_json::parse(toy.read("tok/tokenizer.json"));
  auto& merges = json["model"]["merges"];
  std::swap(merges[2], merges[3]);
  toy.write("tok/tokenizer.json", json.dump());
  const Finished changed = build(toy, "corpus", settings);
  CHECK(changed.status == 0);
  CHECK_THAT(changed.err, Contains("is tokenized again; what changed: the content of the tokenizer (tok)"));
  CHECK(caches(toy).size() == 2);
  const Finished verified = toy.host({"data", "verify", "corpus", "--data.tokenizer_path=tok"});
  CHECK(verified.status == 0);
}

TEST_CASE("cache: names of special tokens in documents are text, or what data.special_tokens says, and are counted (H29, H32)", "[cache]") {
  const Toy toy;
  REQUIRE(toy.host({"tokenizer", "train", "text/a.txt", "--vocab-size", "300", "--out", "tok"}).status == 0);
  const auto json = nlohmann::json::parse(toy.read("tok/tokenizer.json"));
  REQUIRE_FALSE(json["added_tokens"].empty());
  const std::string special = json["added_tokens"][0]["content"];
  toy.write("c.jsonl", "{\"text\": \"a" + special + "b\"}\n{\"text\": \"\"}\n{\"text\": \"c" + special + "\"}\n");
  const auto peek = [&](const std::string& policy) {
    return toy.host({"data", "peek", "c.jsonl", "--data.tokenizer_path=tok", "--data.special_tokens=" + policy});
  };
  const Finished text = peek("text");
  CAPTURE(text.err);
  REQUIRE(text.status == 0);
  CHECK_THAT(text.err, Contains("names of special tokens stand in the text 2 times; they were read as ordinary text"));
  CHECK_THAT(text.out, Contains("a" + special + "b<end>") && Contains("c" + special + "<end>"));
  const Finished as_special = peek("special");
  CHECK_THAT(as_special.out, Contains("document 0, 4 tokens\na<end>b<end>") && Contains("document 1, 1 tokens\n<end>") &&
                                 Contains("document 2, 2 tokens\nc<end>"));
  const Finished error = peek("error");
  CHECK(error.status == 5);
  CHECK_THAT(error.err, Contains("c.jsonl, record 1"));
}

/// A byte-level tokenizer without merges: ids 0 to 2 are special, 3 to 258 bytes.
void write_marks(const Toy& toy) {
  REQUIRE(toy.host({"tokenizer", "train", "text/a.txt", "--vocab-size", "259", "--out", "marks", "--special", "<|endoftext|>", "--special",
                    "<|start|>", "--special", "<|end|>"})
              .status == 0);
}

TEST_CASE("cache: special tokens that a format writes are the tokens, those that somebody says are text, and a document has one end",
          "[cache]") {
  const Toy toy;
  write_marks(toy);
  toy.write("c.jsonl",
            "{\"messages\": [{\"role\": \"u\", \"content\": \"hi\"}, {\"role\": \"assistant\", \"content\": \"yo\"}]}\n"
            "{\"messages\": [{\"role\": \"u\", \"content\": \"<|end|>\"}, {\"role\": \"assistant\", \"content\": \"no\"}]}\n");
  const auto peek = [&](const std::vector<std::string>& more) {
    Finished out = toy.host(joined({"data", "peek", "c.jsonl", "--data.tokenizer_path=marks", "--data.messages_field=messages",
                                    "--data.message_format=<|start|>{role}\n{content}<|end|>\n", "--data.loss_on=answers"},
                                   more));
    INFO(out.err);
    REQUIRE(out.status == 0);
    return out.out;
  };
  // 2 marks, role, break, content a message; a break between them; what ends a document unless its end stands there already.
  const std::string format = peek({});
  CHECK_THAT(format, Contains("document 0, 22 tokens\n[<|start|>u\\nhi<|end|>\\n<|start|>assistant\\n]yo<|end|><end>"));
  CHECK_THAT(format, Contains("document 1, 27 tokens\n[<|start|>u\\n<|end|><|end|>\\n<|start|>assistant\\n]no<|end|><end>"));
  CHECK(peek({"--data.special_tokens=special"}) == format);  // what is said never is a token
  CHECK_THAT(peek({"--data.eos_id=2"}), Contains("document 0, 21 tokens") && Contains("]yo<end>\n"));
  toy.write("t.jinja",
            "{% for m in messages %}<|start|>{{ m.role }}\n{{ m.content }}<|end|>\n{% endfor %}{% if add_generation_prompt %}"
            "<|start|>assistant\n{% endif %}");
  const std::string by_template = peek({"--data.chat_template=t.jinja"});
  CHECK(by_template.substr(by_template.find("document 0")) == format.substr(format.find("document 0")));
  toy.write("marks/tokenizer_config.json",
            "{\"chat_template\": \"{{ bos_token }}{{ messages[-1].content }}{{ eos_token }}\", \"bos_token\": "
            "\"<|start|>\", \"eos_token\": {\"content\": \"<|end|>\"}}");
  CHECK_THAT(peek({"--data.chat_template=tokenizer"}), Contains("document 1, 4 tokens\n") && Contains("no<end>\n"));
}

TEST_CASE("cache: templates of text and prompts write their special tokens, fields do not; completions alone count", "[cache]") {
  const Toy toy;
  write_marks(toy);
  toy.write("p.jsonl", "{\"q\": \"<|end|>\", \"a\": \"b\"}\n");
  const auto peek = [&](const std::vector<std::string>& more) {
    return toy.host(joined({"data", "peek", "p.jsonl", "--data.tokenizer_path=marks"}, more));
  };
  const Finished text = peek({"--data.text_template=<|start|>{q}<|end|>"});
  CHECK_THAT(text.out, Contains("document 0, 10 tokens\n<|start|><|end|><|end|><end>"));
  const Finished pair = peek({"--data.prompt_template=<|start|>{q}<|end|>", "--data.completion_field=a"});
  CHECK_THAT(pair.out, Contains("document 0, 11 tokens\n[<|start|><|end|><|end|>]b<end>"));
  CHECK_THAT(peek({"--data.prompt_field=q", "--data.completion_field=a", "--data.loss_on=all"}).out,
             Contains("document 0, 9 tokens\n<|end|>b<end>"));
  CHECK_THAT(peek({"--data.prompt_field=q"}).err, Contains("data.prompt_field names a prompt, and nothing answers it"));
  CHECK_THAT(peek({"--data.completion_field=a"}).err, Contains("set data.prompt_field or data.prompt_template"));
}

TEST_CASE("cache: one mixture has plain text, chats and pairs, each source with its own keys", "[cache]") {
  const Toy toy;
  toy.write("chat.jsonl", "{\"messages\": [{\"role\": \"user\", \"content\": \"hi\"}, {\"role\": \"assistant\", \"content\": \"yo\"}]}\n");
  toy.write("pairs.jsonl", "{\"q\": \"two\", \"a\": \" four\"}\n");
  toy.write("plain.jsonl", "{\"body\": \"plain text\"}\n");
  std::string job = toy.read("toy.toml");
  const std::string data = "[data]\ndataset_path = \"text\"\nfile_pattern = \"*.txt\"\n";
  REQUIRE(job.find(data) != std::string::npos);
  job.replace(job.find(data), data.size(),
              "[data]\nmessages_field = \"messages\"\nloss_on = \"answers\"\npack_method = \"pad\"\n"
              "[[data.datasets]]\nname = \"chat\"\npath = \"chat.jsonl\"\n"
              "[[data.datasets]]\nname = \"pairs\"\npath = \"pairs.jsonl\"\nprompt_field = \"q\"\ncompletion_field = \"a\"\n"
              "[[data.datasets]]\nname = \"plain\"\npath = \"plain.jsonl\"\ntext_field = \"body\"\n");
  toy.write("mix.toml", job);
  const Finished peek = toy.host({"data", "peek", "mix.toml", "--rows=0", "--eval.enabled=false"});
  INFO(peek.err);
  REQUIRE(peek.status == 0);
  CHECK_THAT(peek.out, Contains("[user: hi\\nassistant: ]yo<end>") && Contains("[two] four<end>") && Contains("plain text<end>"));
  const Finished run =
      toy.host({"mix.toml", "--eval.enabled=false", "--train.max_steps=2", "--train.batch_size=1", "--train.grad_accum_steps=1"});
  INFO(run.err);
  CHECK(run.status == 0);
}

TEST_CASE("cache: peek shows documents of data that are too few for a batch, and says what a run would", "[cache]") {
  const Toy toy;
  toy.write("d/c.jsonl", "{\"text\": \"abcdefgh\"}\n");
  const Finished peek = toy.host(joined({"data", "peek", "toy.toml", "--eval.enabled=false"}, reading("d", {"--train.seq_len=8"})));
  CHECK(peek.status == 0);
  CHECK_THAT(peek.out, Contains("abcdefgh<end>") && Contains("no rows: ") && Contains("fewer than a batch"));
  const Finished asked =
      toy.host(joined({"data", "peek", "toy.toml", "--rows=1", "--eval.enabled=false"}, reading("d", {"--train.seq_len=8"})));
  CHECK(asked.status == 5);
}

TEST_CASE("cache: peek brackets what is no label: the first id of a row, and shows the label behind the last", "[cache]") {
  const Toy toy;
  toy.write("d/c.jsonl", "{\"text\": \"abcdefgh\"}\n{\"text\": \"ij\"}\n");
  const Finished packed = toy.host(
      joined({"data", "peek", "toy.toml", "--rows=1", "--documents=0"},
             reading("d", {"--data.pack_method=best_fit", "--train.batch_size=1", "--train.grad_accum_steps=1", "--data.shuffle=none"})));
  CAPTURE(packed.err);
  REQUIRE(packed.status == 0);
  CHECK_THAT(packed.out, Contains("[a]bcdefgh<end>|[i]j<end>|("));  // the end of a packed document is learned and never an input
}

TEST_CASE("cache: data.cache_dir wins over KF_CACHE_DIR, which wins over .kf-cache; a copied cache is used as it is", "[cache]") {
  const Toy toy;
  write_corpus(toy, "corpus", 1, 20000);
  const auto in = [&](const std::string& variable, const std::vector<std::string>& more) {
    kf::test::Options options;
    options.cwd = toy.folder();
    options.env = {{"KF_CACHE_DIR", variable}};
    return kf::test::run(toy.command(joined({"data", "build", "corpus"}, more)), options);
  };
  CHECK_THAT(in("shared", {}).out, Contains("; built shared/"));
  CHECK_THAT(in("shared", {"--data.cache_dir=own"}).out, Contains("; built own/"));
  CHECK_FALSE(fs::exists(toy / ".kf-cache"));
  CHECK(toy.read("shared/.gitignore") == "*\n");
  fs::copy(toy / "shared", toy / "copy", fs::copy_options::recursive);
  fs::rename(toy / "corpus", toy / "moved");
  kf::test::Options options;
  options.cwd = toy.folder();
  CHECK_THAT(kf::test::run(toy.command({"data", "build", "moved", "--data.cache_dir=copy"}), options).out, Contains("; already in copy/"));
}
