#include <catch2/catch.hpp>

#include <fstream>

#include "core/error.h"
#include "data/file/memory_fault.h"
#include "support/temp_dir.h"
#include "unit/data/read/texts.h"

namespace {

using namespace kf;
using Catch::Matchers::Contains;
using Texts = std::vector<std::string>;

}  // namespace

TEST_CASE("jsonl: escapes, blank lines, a byte order mark and a missing last line break", "[read]") {
  const test::TempDir dir;
  dir.write(
      "a.jsonl",
      "\xef\xbb\xbf{\"text\": \"a\\u00e9\\ud83d\\ude00\\n\"}\r\n\n  \n{\"n\": [1, {\"text\": 5}], \"text\": \"\"}\n{\"text\":\"last\"}");
  CHECK(test::texts_of(dir / "a.jsonl") == Texts{"a\xc3\xa9\xf0\x9f\x98\x80\n", "", "last"});
}

TEST_CASE("jsonl: numbers beyond 64 bits elsewhere in a record do no harm", "[read]") {
  const test::TempDir dir;
  dir.write("a.jsonl", "{\"id\": 123456789012345678901234567890, \"text\": \"a\"}\n{\"text\": \"b\"}\n");
  CHECK(test::texts_of(dir / "a.jsonl") == Texts{"a", "b"});
}

TEST_CASE("jsonl: what is wrong with a line is said with its number", "[read]") {
  const test::TempDir dir;
  const auto [line, says] = GENERATE(table<std::string, std::string>({
      {"{\"text\": 5}", "the text field \"text\" (data.hf_dataset_text_field) is a number, not a string"},
      {"{\"text\": null}", "is null, not a string"},
      {"{\"body\": \"x\", \"id\": 1}", "no text field \"text\" (data.hf_dataset_text_field); the keys are body, id"},
      {"[1]", "expected a JSON object"},
      {"\"x\"", "expected a JSON object"},
      {"{\"text\": \"x\"} {\"text\": \"y\"}", "not valid JSON at byte"},
      {"{\"text\": \"x\", \"id\": }", "not valid JSON at byte"},
      {"{\"text\": \"\\ud800\"}", "not valid JSON"},
      {"{\"text\": \"\xff\"}", "not valid UTF-8 at byte 11"},
      {"{}", "the object is empty"},
  }));
  dir.write("a.jsonl", "{\"text\": \"good\"}\n\n" + line + "\n");
  const std::string message = test::error_of(dir / "a.jsonl");
  CHECK_THAT(message, Contains("a.jsonl:3: "));
  CHECK_THAT(message, Contains(says));
}

TEST_CASE("jsonl: deep nesting is an error, not a crash", "[read]") {
  const test::TempDir dir;
  dir.write("a.jsonl", "{\"text\": \"x\", \"n\": 1e999, \"d\": " + std::string(200000, '[') + std::string(200000, ']') + "}\n");
  CHECK_THAT(test::error_of(dir / "a.jsonl"), Contains("a.jsonl:1: "));
}

TEST_CASE("jsonl: a line of 20 MB is a record", "[read]") {
  const test::TempDir dir;
  const std::string text(20 << 20, 'x');
  dir.write("a.jsonl", "{\"text\": \"a\"}\n{\"text\": \"" + text + "\"}\n{\"text\": \"b\"}\n");
  const Texts texts = test::texts_of(dir / "a.jsonl");
  REQUIRE(texts.size() == 3);
  CHECK(texts[1] == text);
  CHECK(texts[2] == "b");
}

TEST_CASE("jsonl: parts of any size give the records of the whole, each once", "[read]") {
  const test::TempDir dir;
  std::string content;
  Texts expected;
  for (int i = 0; i < 40; ++i) {
    expected.push_back(std::string(static_cast<std::size_t>(i * i % 23), 'a') + std::to_string(i));
    content += "{\"text\": \"" + expected.back() + "\"}\n" + (i % 7 == 0 ? "\n" : "");
  }
  const fs::path path = dir.write("a.jsonl", content);
  for (std::int64_t bytes = 1; bytes < 200; ++bytes) {
    CAPTURE(bytes);
    REQUIRE(test::texts_in_parts(path, bytes) == expected);
  }
}

TEST_CASE("jsonl: a broken line of a later part is named by its line in the file", "[read]") {
  const test::TempDir dir;
  std::string content;
  for (int i = 1; i <= 100; ++i) {
    content += i == 77 ? "broken\n" : "{\"text\": \"some text\"}\n";
  }
  const fs::path path = dir.write("a.jsonl", content);
  CHECK_THROWS_WITH(test::texts_in_parts(path, 100), Contains("a.jsonl:77: not valid JSON"));
}

TEST_CASE("jsonl: a part that begins inside a long line keeps nothing of it and reads no further than its own end", "[read]") {
  const test::TempDir dir;
  const std::string line = "{\"text\": \"" + std::string(8 << 20, 'x') + "\"}\n";
  const fs::path path = dir.write("a.jsonl", line + "{\"text\": \"a\"}\n" + line + "{\"text\": \"b\"}\n");
  const auto size = static_cast<std::int64_t>(fs::file_size(path));
  const SourceFile file{path, "a.jsonl", size, {FileFormat::jsonl, Compression::none}, "", nullptr};
  ReadOptions options;
  options.max_record_bytes = 1000;  // the long line would be an error if it were kept
  Skipped skipped;
  Record record;
  const auto after = static_cast<std::int64_t>(line.size());
  const std::unique_ptr<RecordReader> inside = open_records(file, {100, 3 << 20}, options, skipped);
  CHECK(!inside->next(record));
  CHECK(inside->position() <= (5 << 20));
  const std::unique_ptr<RecordReader> across = open_records(file, {100, after + 5}, options, skipped);
  REQUIRE(across->next(record));
  CHECK(record.text == "a");
  CHECK(!across->next(record));
}

TEST_CASE("jsonl: parts behind 2 and 4 GiB begin where they should", "[read]") {
  const test::TempDir dir;
  const fs::path path = dir.write("a.jsonl", "");
  const std::int64_t begin = GENERATE((std::int64_t{1} << 31) - 3, (std::int64_t{1} << 32) + 16);
  fs::resize_file(path, static_cast<std::uintmax_t>(begin) - 1);  // a hole: no byte of it is on disk
  {
    std::ofstream out(path, std::ios::app);
    out << "\n{\"text\": \"a\"}\n{\"text\": \"b\"}\n";
  }
  Skipped skipped;
  const SourceFile file{path, "a.jsonl", static_cast<std::int64_t>(fs::file_size(path)), {FileFormat::jsonl, Compression::none},
                        "",   nullptr};
  const std::unique_ptr<RecordReader> reader = open_records(file, {begin, FileSpan{}.end}, {}, skipped);
  Record record;
  REQUIRE(reader->next(record));
  CHECK(record.text == "a");
  REQUIRE(reader->next(record));
  CHECK(record.text == "b");
  CHECK(!reader->next(record));
}

TEST_CASE("read: memory that runs out names the file, the record and the setting", "[read]") {
  const auto fails = [](std::int64_t record, auto what) { naming_file("a.jsonl.gz", record, [&]() -> int { throw what; }); };
  CHECK_THROWS_WITH(fails(3, std::bad_alloc()), Contains("a.jsonl.gz: memory ran out over record 3") && Contains("data.max_record_bytes"));
  CHECK_THROWS_WITH(fails(0, std::length_error("vector")), Contains("memory ran out over one of its records"));
  CHECK_THROWS_WITH(fails(3, Error(Code::data, "another fault")), Contains("another fault") && !Contains("memory"));
  CHECK(naming_file("a", 1, [] { return 7; }) == 7);
}
