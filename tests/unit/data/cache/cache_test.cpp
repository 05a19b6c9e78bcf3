// The token cache through its interface: what it writes, when it is made again, what it never takes for whole.

#include "data/cache/cache.h"

#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>

#include <unistd.h>

#include <array>
#include <atomic>
#include <chrono>
#include <map>
#include <random>
#include <regex>
#include <thread>

#include "core/digest.h"
#include "core/error.h"
#include "core/log.h"
#include "data/cache/inventory.h"
#include "data/cache/lock.h"
#include "data/cache/memory.h"
#include "data/file/token_file.h"
#include "support/temp_dir.h"

using namespace kf;
using Catch::Contains;
using Ids = std::vector<std::int64_t>;
using kf::test::TempDir;

namespace {

/// Words to ids: 0 ends a document, 1 begins one, "<end>" is the name of 0.
class WordTokenizer final : public Tokenizer {
 public:
  explicit WordTokenizer(std::string hash = "words 1") : hash_(std::move(hash)) {}
  std::vector<std::int64_t> encode(std::string_view text) const override {
    std::vector<std::uint32_t> ids;
    append(text, ids, {});
    return {ids.begin(), ids.end()};
  }
  std::size_t append(std::string_view text, std::vector<std::uint32_t>& out, const EncodeOptions& options) const override {
    std::size_t names = 0;
    for (const std::string& word : split(text, ' ')) {
      const bool name = word == "<end>";
      names += name ? 1 : 0;
      KF_CHECK(!name || options.special != SpecialText::error, Code::data, "<end> stands in the text");
      out.push_back(name && options.special == SpecialText::special ? 0U : static_cast<std::uint32_t>(2 + hash64(word) % 700));
    }
    return names;
  }
  std::string decode(std::span<const std::int64_t>) const override { return {}; }
  std::int64_t vocab_size() const override { return 702; }
  std::optional<std::int64_t> eos_id() const override { return 0; }
  std::optional<std::int64_t> bos_id() const override { return 1; }
  std::string content_hash() const override { return hash_; }
  bool concurrent() const override { return true; }

 private:
  std::string hash_;
};

/// A source and what is asked of it.
struct Bench {
  explicit Bench(const fs::path& corpus, const fs::path& cache) {
    SourceRequest where;
    where.paths = {corpus.string()};
    files = resolve_source(where);
    request.dir = cache;
    request.files = &files;
    request.source = "data.dataset_path = \"corpus\"";
    request.encode.tokenizer = &tokenizer;
    request.encode.eos = 0;
    request.encode.vocab_size = 1000;
    request.tokenizer_hash = "words 1";
    request.tokenizer_name = "words";
  }
  Bench(const Bench&) = delete;
  Bench& operator=(const Bench&) = delete;

  WordTokenizer tokenizer;
  SourceFiles files;
  cache::CacheRequest request;
};

/// Two files of lines, the second compressed by nobody: about `lines` documents each.
void write_corpus(const fs::path& folder, int lines, const std::string& last = "the end") {
  for (const char* name : {"a.jsonl", "b.jsonl"}) {
    std::string text;
    for (int i = 0; i < lines; ++i) {
      text += format("{\"text\": \"{} says number {} of {}\"}\n", name, i * i, i % 7);
    }
    fs::create_directories(folder);
    write_file_atomic(folder / name, text + "{\"text\": \"" + last + "\"}\n");
  }
}

std::map<std::string, std::string> files_of(const fs::path& folder) {
  std::map<std::string, std::string> out;
  for (const fs::directory_entry& entry : fs::recursive_directory_iterator(folder)) {
    if (entry.is_regular_file()) {
      out[entry.path().lexically_relative(folder).string()] = read_file(entry.path());
    }
  }
  return out;
}

Ids ids_of(const Documents& documents) {
  Ids out(static_cast<std::size_t>(documents.tokens()));
  documents.read(0, out);
  return out;
}

Ids document_of(const Documents& documents, std::int64_t index) {
  Ids out(static_cast<std::size_t>(documents.length(index)));
  documents.read(documents.start(index), out);
  return out;
}

/// The ids of a corpus with one document a line.
Ids encoded(const std::vector<std::string>& lines, const std::function<void(Bench&)>& change) {
  const TempDir folder;
  std::string text;
  for (const std::string& line : lines) {
    text += nlohmann::json{{"text", line}}.dump() + "\n";
  }
  folder.write("corpus/x.jsonl", text);
  Bench bench(folder / "corpus", folder / "cache");
  change(bench);
  const auto opened = cache::open_cache(bench.request);
  CHECK(ids_of(*cache::read_into_memory(bench.request)) == ids_of(*opened.documents));  // without a cache they are the same
  return ids_of(*opened.documents);
}

}  // namespace

TEST_CASE("cache: the files are the same for 0, 1 and 8 threads, and for every cut into units the ids are") {
  const TempDir folder;
  write_corpus(folder / "corpus", 3000);
  std::map<std::string, std::string> first;
  Ids ids;
  for (const std::int64_t threads : {0, 1, 8}) {
    Bench bench(folder / "corpus", folder / format("cache{}", threads));
    bench.request.threads = threads;
    bench.request.unit_bytes = 20000;
    const auto opened = cache::open_cache(bench.request);
    CHECK(opened.built);
    CHECK(opened.documents->manifest().shards.size() > 5);
    CHECK(opened.documents->faults().empty());
    const auto files = files_of(opened.documents->folder());
    CHECK(files.size() == 1 + 3 * opened.documents->manifest().shards.size());
    if (first.empty()) {
      first = files;
      ids = ids_of(*opened.documents);
    }
    CHECK(files == first);
  }
  Bench whole(folder / "corpus", folder / "whole");
  const auto opened = cache::open_cache(whole.request);
  CHECK(opened.documents->manifest().shards.size() == 1);
  CHECK(ids_of(*opened.documents) == ids);
  CHECK(opened.documents->count() == 6002);
  CHECK(opened.documents->describe() == format("2 files, {} of text, {} tokens (words)",
                                               human_bytes(static_cast<double>(opened.documents->manifest().counts.text_bytes)),
                                               grouped(opened.documents->tokens())));
  CHECK(ids_of(*cache::read_into_memory(whole.request)) == ids);
  CHECK(opened.documents->text_hash(6001) == hash64("the end"));
}

TEST_CASE("cache: its files are .npy that the reader of token files understands, too") {
  const TempDir folder;
  write_corpus(folder / "corpus", 30);
  Bench bench(folder / "corpus", folder / "cache");
  const auto opened = cache::open_cache(bench.request);
  const TokenFile file(opened.documents->folder() / "ids-00000.npy", {});
  CHECK(file.type() == TokenType::uint16);
  Ids ids(static_cast<std::size_t>(file.tokens()));
  file.read(0, ids);
  CHECK(ids == ids_of(*opened.documents));
  const TokenFile ends(opened.documents->folder() / "ends-00000.npy", {});
  CHECK(ends.type() == TokenType::int64);
  CHECK(ends.tokens() == opened.documents->count());
}

TEST_CASE("cache: the second time it is opened, not made, also from another place and through a moved source") {
  const TempDir folder;
  write_corpus(folder / "corpus", 50);
  const std::string key = [&] {
    Bench bench(folder / "corpus", folder / "cache");
    const auto opened = cache::open_cache(bench.request);
    CHECK(opened.built);
    return opened.documents->manifest().key;
  }();
  Bench again(folder / "corpus", folder / "cache");
  again.request.build = false;
  CHECK_FALSE(cache::open_cache(again.request).built);
  fs::rename(folder / "corpus", folder / "moved");
  fs::rename(folder / "cache", folder / "other");
  Bench moved(folder / "moved", folder / "other");
  moved.request.build = false;
  const auto opened = cache::open_cache(moved.request);
  CHECK(opened.documents->manifest().key == key);
  CHECK(opened.documents->folder() == folder / "other" / key);
}

TEST_CASE("cache: a changed byte of the same size, another tokenizer or option is another cache (H26)") {
  const TempDir folder;
  write_corpus(folder / "corpus", 20, "the end");
  const auto key = [&](const std::function<void(Bench&)>& change) {
    Bench bench(folder / "corpus", folder / "cache");
    change(bench);
    const auto opened = cache::open_cache(bench.request);
    return opened.documents->manifest().key;
  };
  const auto same = [](Bench&) {};
  const std::string before = key(same);
  const auto time = fs::last_write_time(folder / "corpus" / "b.jsonl");
  write_corpus(folder / "corpus", 20, "the End");
  fs::last_write_time(folder / "corpus" / "b.jsonl", time);  // an edit that hides itself
  const std::string after = key(same);
  CHECK(after != before);
  CHECK(key([](Bench& bench) { bench.request.tokenizer_hash = "words 2"; }) != after);
  CHECK(key([](Bench& bench) { bench.request.options["data.add_eos"] = "none"; }) != after);
  CHECK(key(same) == after);
  write_corpus(folder / "corpus", 20, "the end");
  Bench back(folder / "corpus", folder / "cache");
  back.request.build = false;  // the first one is still there
  CHECK(cache::open_cache(back.request).documents->manifest().key == before);
}

TEST_CASE("cache: the log says what changed") {
  cache::KeyInputs before;
  before.sources = {{"a.txt", 10, "text", "1"}, {"b.txt", 20, "text", "2"}, {"c.txt", 1, "text", "3"}};
  before.tokenizer = "x";
  before.tokenizer_description = "tok.json";
  before.options = {{"data.add_bos", "none"}, {"data.on_error", "stop"}};
  cache::KeyInputs now = before;
  CHECK(cache::changes(before, now).empty());
  now.sources = {{"a.txt", 10, "text", "9"}, {"c.txt", 12, "text", "4"}, {"d.txt", 1, "text", "5"}};
  now.tokenizer = "y";
  now.options["data.add_bos"] = "id 7";
  CHECK(cache::changes(before, now) == std::vector<std::string>{"the content of a.txt (still 10 bytes)",
                                                                "c.txt (1 byte before, 12 bytes now)", "d.txt is new", "b.txt is gone",
                                                                "the content of the tokenizer (tok.json)",
                                                                "data.add_bos (\"none\" before, \"id 7\" now)"});
  cache::KeyInputs turned = before;
  std::swap(turned.sources[0], turned.sources[1]);
  CHECK(cache::changes(before, turned) == std::vector<std::string>{"the order of the files"});
  CHECK(cache::key_of(turned) != cache::key_of(before));
}

TEST_CASE("cache: every document ends in exactly one EOS (H32) and begins with one BOS") {
  const std::vector<std::string> lines{"a b", "", "a <end>", "<end>"};
  const std::int64_t a = 2 + static_cast<std::int64_t>(hash64("a") % 700);
  const std::int64_t b = 2 + static_cast<std::int64_t>(hash64("b") % 700);
  const std::int64_t name = 2 + static_cast<std::int64_t>(hash64("<end>") % 700);
  CHECK(encoded(lines, [](Bench&) {}) == Ids{a, b, 0, 0, a, name, 0, name, 0});
  const auto special = [](Bench& bench) { bench.request.encode.options.special = SpecialText::special; };
  CHECK(encoded(lines, special) == Ids{a, b, 0, 0, a, 0, 0});
  CHECK(encoded(lines, [&](Bench& bench) {
          special(bench);
          bench.request.encode.bos = 1;
        }) == Ids{1, a, b, 0, 1, 0, 1, a, 0, 1, 0});
  CHECK(encoded(lines, [&](Bench& bench) {  // one id for both, as GPT-2 has it
          special(bench);
          bench.request.encode.bos = 0;
        }) == Ids{0, a, b, 0, 0, 0, 0, a, 0, 0, 0});
  CHECK(encoded(lines, [](Bench& bench) { bench.request.encode.eos.reset(); }) == Ids{a, b, a, name, name});
  CHECK_THROWS_WITH(encoded(lines, [](Bench& bench) { bench.request.encode.options.special = SpecialText::error; }),
                    Contains("<end> stands in the text") && Contains("x.jsonl, record 3"));
  CHECK_THROWS_WITH(encoded(lines, [](Bench& bench) { bench.request.encode.vocab_size = 2; }),
                    Contains("model.vocab_size is 2") && Contains("x.jsonl, record 1"));
}

TEST_CASE("cache: what is left out is counted up to a limit, whatever the threads read ahead; empty documents fill no memory") {
  const TempDir folder;
  std::string text;
  for (int i = 0; i < 40000; ++i) {
    text += i % 5 == 4 ? "broken\n" : i % 2 == 0 ? "{\"text\": \"a word or two of this document\"}\n" : "{\"text\": \"\"}\n";
  }
  folder.write("x.jsonl", text);
  const auto files = [&](std::int64_t threads) {
    Bench bench(folder / "x.jsonl", folder / format("c{}", threads));
    bench.request.threads = threads;
    bench.request.read.skip_broken = true;
    bench.request.max_tokens = 1000;
    const auto opened = cache::open_cache(bench.request);
    CHECK(opened.documents->manifest().notes.skipped > 0);
    return files_of(opened.documents->folder());
  };
  CHECK(files(0) == files(8));
}

TEST_CASE("cache: limits keep the first documents whatever the threads, and another limit is another build") {
  const TempDir folder;
  write_corpus(folder / "corpus", 2000);
  const auto limited = [&](std::int64_t threads, std::int64_t documents, std::int64_t tokens) {
    Bench bench(folder / "corpus", folder / format("c{}-{}-{}", threads, documents, tokens));
    bench.request.threads = threads;
    bench.request.unit_bytes = 10000;
    bench.request.max_documents = documents;
    bench.request.max_tokens = tokens;
    const auto opened = cache::open_cache(bench.request);
    return std::pair(files_of(opened.documents->folder()), opened.documents->count());
  };
  CHECK(limited(0, 500, 0) == limited(8, 500, 0));
  CHECK(limited(0, 0, 3000) == limited(8, 0, 3000));
  CHECK(limited(8, 500, 0).second >= 500);
  CHECK(limited(8, 500, 0).second < 1000);
  CHECK(limited(1, 3, 0).second == 3);
}

TEST_CASE("cache: what a killed build finished is kept, what it did not is made again") {
  const TempDir folder;
  write_corpus(folder / "corpus", 2000);
  Bench bench(folder / "corpus", folder / "whole");
  bench.request.unit_bytes = 20000;
  const auto whole = cache::open_cache(bench.request);
  const std::string key = whole.documents->manifest().key;
  const auto expected = files_of(whole.documents->folder());
  // The folder of a build that was killed in its fourth part: three are recorded, one has files that nobody vouches for.
  const fs::path part = folder / "killed" / (key + ".part");
  fs::create_directories(part);
  for (std::size_t i = 0; i < 4; ++i) {
    for (const char* what : {"ids", "ends", "hashes"}) {
      fs::copy(whole.documents->folder() / cache::shard_file(what, i), part / cache::shard_file(what, i));
    }
  }
  for (std::size_t i = 0; i < 3; ++i) {
    write_file_atomic(part / (cache::shard_file("shard", i) + ".json"), cache::to_json(whole.documents->manifest().shards[i]));
  }
  write_file_atomic(part / "ids-00003.npy", "half");
  write_file_atomic(part / "shard-00003.json.tmp4711", "killed before it had its name");
  write_file_atomic(part / "ids-00001.npy", "cut off after its record was written");
  const auto untouched = fs::last_write_time(part / "ids-00000.npy");
  bench.request.dir = folder / "killed";
  const auto resumed = cache::open_cache(bench.request);
  CHECK(resumed.built);
  CHECK(files_of(resumed.documents->folder()) == expected);
  CHECK(fs::last_write_time(resumed.documents->folder() / "ids-00000.npy") == untouched);
  CHECK_FALSE(fs::exists(part));
}

TEST_CASE("cache: a damaged one is found and made again") {
  const TempDir folder;
  write_corpus(folder / "corpus", 100);
  Bench bench(folder / "corpus", folder / "cache");
  const auto opened = cache::open_cache(bench.request);
  const fs::path at = opened.documents->folder();
  const auto expected = files_of(at);
  const auto damage = [&](const std::string& name, std::size_t place, const std::string& bytes) {
    std::string content = read_file(at / name);
    content.replace(place, bytes.size(), bytes);
    write_file_atomic(at / name, content);
  };
  SECTION("a bit in the ids is found by verify") {
    damage("ids-00000.npy", 200, "\x01");
    bench.request.build = false;
    const auto faults = cache::open_cache(bench.request).documents->faults();
    REQUIRE_FALSE(faults.empty());
    CHECK_THAT(faults.front(), Contains("ids-00000.npy") && Contains("checksum"));
  }
  SECTION("an id that was never written is refused where it is read, too") {
    damage("ids-00000.npy", 128, "\xff\xff");
    bench.request.build = false;
    const auto documents = cache::open_cache(bench.request).documents;
    CHECK_THROWS_WITH(ids_of(*documents), Contains("is damaged") && Contains("65535"));
    CHECK(documents->faults().size() == 2);
  }
  SECTION("ends that fall are found") {
    damage("ends-00000.npy", 128 + 8, std::string(8, '\0'));
    bench.request.build = false;
    CHECK(cache::open_cache(bench.request).documents->faults().size() == 2);
  }
  SECTION("a file that was cut off, a header or a manifest that is not what was written: made again") {
    const std::string name = GENERATE("ids-00000.npy", "ends-00000.npy", "hashes-00000.npy", "cache.json");
    write_file_atomic(at / name, read_file(at / name).substr(0, 150));
    const auto again = cache::open_cache(bench.request);
    CHECK(again.built);
    CHECK(files_of(at) == expected);
  }
}

TEST_CASE("cache: who lists caches is in nobody's way") {
  const TempDir folder;
  const fs::path corpus = folder.write("corpus/a.txt", "some words\n");
  Bench bench(corpus, folder / "cache");
  open_cache(bench.request);
  std::atomic<bool> done{false};
  std::jthread lister([&] {
    while (!done) {
      cache::caches_in(folder / "cache");
    }
  });
  bench.request.build = false;  // one that is not there would be an error
  for (int i = 0; i < 2000; ++i) {
    CHECK_NOTHROW(open_cache(bench.request));
  }
  done = true;
}

TEST_CASE("cache: what may not be changed is not in use for that, and stays") {
  if (::geteuid() == 0) {
    return;  // may change everything
  }
  const TempDir folder;
  Bench bench(folder.write("corpus/a.txt", "some words\n"), folder / "cache");
  open_cache(bench.request);
  const fs::path dir = folder / "cache";
  const fs::path made = cache::caches_in(dir).at(0).folder;
  fs::permissions(made / "cache.json", fs::perms::owner_read);
  fs::permissions(dir, fs::perms::owner_read | fs::perms::owner_exec);
  const cache::CacheEntry entry = cache::caches_in(dir).at(0);
  CHECK_FALSE(entry.in_use);
  CHECK_THROWS_WITH(cache::remove_cache(entry), Contains("cannot remove") && Contains("Permission denied"));
  CHECK(fs::exists(made / "cache.json"));
  fs::permissions(dir, fs::perms::none);
  CHECK_THROWS_WITH(cache::caches_in(dir), Contains("cannot read the folder of caches"));
  fs::permissions(dir, fs::perms::owner_all);
}

TEST_CASE("cache: a lock whose file went away while it was waited for is none") {
  static std::atomic<bool> waits;
  waits = false;
  const TempDir folder;
  const fs::path file = folder / "key.lock";
  auto first = std::make_unique<cache::FileLock>(file, "");
  log::set_terminal_guard([] { waits = true; }, nullptr);  // the line that says so comes when the file is open
  std::unique_ptr<cache::FileLock> second;
  std::jthread waiting([&] { second = std::make_unique<cache::FileLock>(file, "waits"); });
  while (!waits) {
    std::this_thread::yield();
  }
  fs::remove(file);
  first.reset();
  waiting.join();
  log::set_terminal_guard(nullptr, nullptr);
  CHECK_FALSE(cache::FileLock::is_free(file));
}

TEST_CASE("cache: a source that changes while it is read is an error, and nothing of it stays") {
  const TempDir folder;
  write_corpus(folder / "corpus", 2000);
  Bench bench(folder / "corpus", folder / "cache");
  bench.request.unit_bytes = 20000;
  bool written = false;
  bench.request.transform = [&](std::string& text) {
    if (!written && text.starts_with("b.jsonl")) {
      const std::string content = read_file(folder / "corpus" / "b.jsonl");
      write_file_atomic(folder / "corpus" / "b.jsonl", content);
      written = true;
    }
    return true;
  };
  CHECK_THROWS_WITH(cache::open_cache(bench.request), Contains("b.jsonl") && Contains("changed while it was read"));
  for (const fs::directory_entry& entry : fs::directory_iterator(folder / "cache")) {
    CHECK(entry.path().extension() != ".part");
    CHECK_FALSE(fs::exists(entry.path() / "cache.json"));
  }
}

TEST_CASE("cache: transforms change and drop documents, in order, on the calling thread") {
  const TempDir folder;
  write_corpus(folder / "corpus", 100);
  const auto calling = std::this_thread::get_id();
  Bench bench(folder / "corpus", folder / "cache");
  bench.request.threads = 4;
  std::int64_t seen = 0;
  bench.request.transform = [&](std::string& text) {
    CHECK(std::this_thread::get_id() == calling);
    text += " more";
    return ++seen % 2 == 1;
  };
  const auto opened = cache::open_cache(bench.request);
  CHECK(opened.documents->count() == 101);
  CHECK(opened.documents->manifest().notes.dropped == 101);
  const Ids last = document_of(*opened.documents, 0);
  CHECK(last[last.size() - 2] == 2 + static_cast<std::int64_t>(hash64("more") % 700));
}

TEST_CASE("cache: only answers count, no token is on both sides of a border, and the end belongs to the last answer") {
  const TempDir folder;
  folder.write("chat.jsonl",
               "{\"messages\": [{\"role\": \"user\", \"content\": \"a b\"}, {\"role\": \"assistant\", \"content\": \"c d\"}]}\n"
               "{\"messages\": [{\"role\": \"assistant\", \"content\": \"c\"}, {\"role\": \"user\", \"content\": \"e\"}]}\n");
  Bench bench(folder / "chat.jsonl", folder / "cache");
  bench.request.read.messages_field = "messages";
  bench.request.read.message_format = "{role} {content} ";
  bench.request.read.answers_only = true;
  bench.request.encode.mask = true;
  const auto documents = cache::open_cache(bench.request).documents;
  REQUIRE(documents->has_mask());
  std::vector<std::uint8_t> mask(static_cast<std::size_t>(documents->tokens()));
  documents->read_mask(0, mask);
  CHECK(documents->count() == 2);
  CHECK(std::count(mask.begin(), mask.end(), 1) > 0);
  CHECK(mask[static_cast<std::size_t>(documents->start(1)) - 1] == 1);
  CHECK(mask.back() == 0);
  CHECK(mask.front() == 0);
}

TEST_CASE("cache: broken records are counted in cache.json where they are left out") {
  const TempDir folder;
  folder.write("x.jsonl", "{\"text\": \"a\"}\nnot json\n{\"text\": \"b\"}\n{\"other\": 1}\n");
  Bench bench(folder / "x.jsonl", folder / "cache");
  CHECK_THROWS_WITH(cache::open_cache(bench.request), Contains("x.jsonl") && Contains("2"));
  bench.request.read.skip_broken = true;
  bench.request.options["data.on_error"] = "skip";
  const auto opened = cache::open_cache(bench.request);
  CHECK(opened.documents->count() == 2);
  const auto json = nlohmann::json::parse(read_file(opened.documents->folder() / "cache.json"));
  CHECK(json["counts"]["skipped"]["count"] == 2);
  CHECK(json["counts"]["documents"] == 2);
  CHECK(json["sources"][0]["name"] == "x.jsonl");
  CHECK(json["options"]["data.on_error"] == "skip");
}

TEST_CASE("cache: without a document there is nothing to keep, and the message says why") {
  const TempDir folder;
  folder.write("x.jsonl", "{\"text\": \"a\"}\n");
  folder.write("empty.jsonl", "\n");
  Bench bench(folder / "x.jsonl", folder / "cache");
  bench.request.transform = [](std::string&) { return false; };
  CHECK_THROWS_WITH(cache::open_cache(bench.request), Contains("transforms leave no document: all 1 are dropped"));
  Bench empty(folder / "empty.jsonl", folder / "cache");
  CHECK_THROWS_WITH(cache::open_cache(empty.request), Contains("empty.jsonl holds no document"));
  for (const fs::directory_entry& entry : fs::directory_iterator(folder / "cache")) {
    CHECK_FALSE(fs::exists(entry.path() / "cache.json"));
  }
}

TEST_CASE("cache: a cache.json with any byte changed is refused or read, and what is read stays inside its files") {
  const TempDir folder;
  write_corpus(folder / "corpus", 40);
  Bench bench(folder / "corpus", folder / "cache");
  bench.request.unit_bytes = 2000;
  const auto opened = cache::open_cache(bench.request);
  const fs::path at = opened.documents->folder();
  const std::string good = read_file(at / "cache.json");
  for (const char* number : {"1e300", "18446744073709551615", "-2", "0.5"}) {
    const std::string text = std::regex_replace(good, std::regex("\"tokens\": ?[0-9]+"), "\"tokens\": " + std::string(number));
    CHECK_THROWS_WITH(cache::manifest_from_json(text, at / "cache.json"), Catch::Contains("where a count belongs"));
  }
  std::mt19937 random(5);
  int refused = 0;
  constexpr int kRounds = 3000;
  for (int round = 0; round < kRounds; ++round) {
    std::string text = good;
    const std::size_t place = random() % text.size();
    constexpr std::string_view letters = "0123456789-{}[]\",:. ae\0";
    text[place] = letters[random() % letters.size()];
    if (round % 3 == 0) {
      text.insert(random() % text.size(), 1, letters[random() % letters.size()]);
    }
    try {
      const cache::CachedDocuments documents(at, cache::manifest_from_json(text, at / "cache.json"), "mutated");
      Ids ids(static_cast<std::size_t>(std::min<std::int64_t>(documents.tokens(), 5000)));
      documents.read(0, ids);
      documents.start(documents.count() / 2);
      documents.text_hash(0);
    } catch (const Error& error) {
      CHECK(error.code() == Code::data);
      ++refused;
    }
  }
  CHECK(refused > kRounds / 4);
}
