// The samples of tests/unit/read/files, as formats.json there describes them.

#include <catch2/catch.hpp>

#include <nlohmann/json.hpp>

#include "core/error.h"
#include "core/sha256.h"
#include "data/read/utf8.h"
#include "data/token_file.h"
#include "unit/read/texts.h"

namespace {

using namespace kf;
using Catch::Matchers::Contains;
using nlohmann::json;

const fs::path kFiles = fs::path(KF_SOURCE_DIR) / "tests/unit/read/files";

json entry(const std::string& name) {
  const json all = json::parse(read_file(kFiles / "formats.json"));
  for (const json& one : all.at("files")) {
    if (one.at("file") == name) {
      return one;
    }
  }
  FAIL("no entry " << name);
  return {};
}

void check_sample(const std::string& name, const ReadOptions& options = {}) {
  CAPTURE(name);
  const json expected = entry(name);
  const std::vector<std::string> texts = test::texts_of(kFiles / name, options);
  CHECK(texts.size() == expected.at("documents"));
  CHECK(test::digest_of(texts) == expected.at("sha256_text_nul"));
  std::int64_t characters = 0;
  for (const std::string& text : texts) {
    characters += count_characters(text);
  }
  CHECK(characters == expected.at("characters"));
}

}  // namespace

TEST_CASE("read: text, JSON lines, gzip and zstd give the samples' documents", "[read]") {
  check_sample(GENERATE(as<std::string>{}, "docs.jsonl", "docs.jsonl.gz", "docs.jsonl.zst", "plain.txt"));
}

TEST_CASE("read: a chat's text is its messages by role, a line each", "[read]") {
  ReadOptions options;
  options.messages_field = "messages";
  check_sample("chat.jsonl", options);
}

TEST_CASE("read: broken samples are refused with file, place and reason", "[read]") {
  struct Case {
    const char* file;
    std::vector<const char*> says;
  };
  const Case broken = GENERATE(values<Case>({
      {"broken_truncated.jsonl.gz", {"broken_truncated.jsonl.gz", "gzip stream ends early"}},
      {"broken_truncated.jsonl.zst", {"broken_truncated.jsonl.zst", "zstd stream ends early"}},
      {"broken_invalid_line.jsonl", {"broken_invalid_line.jsonl:7", "not valid JSON"}},
      {"broken_missing_field.jsonl", {"broken_missing_field.jsonl:5", "no text field \"text\"", "content"}},
      {"broken_last_line_cut.jsonl", {"broken_last_line_cut.jsonl:10", "ends early"}},
  }));
  const std::string message = test::error_of(kFiles / broken.file);
  for (const char* part : broken.says) {
    CHECK_THAT(message, Contains(part));
  }
}

TEST_CASE("read: told to skip, broken records are counted and the others read", "[read]") {
  const auto [name, good, place] = GENERATE(table<std::string, std::size_t, std::string>({
      {"broken_invalid_line.jsonl", 11, "broken_invalid_line.jsonl:7"},
      {"broken_missing_field.jsonl", 11, "broken_missing_field.jsonl:5"},
      {"broken_last_line_cut.jsonl", 9, "broken_last_line_cut.jsonl:10"},
  }));
  ReadOptions options;
  options.skip_broken = true;
  Skipped skipped;
  CHECK(test::texts_of(kFiles / name, options, skipped).size() == good);
  CHECK(skipped.count() == 1);
  REQUIRE(skipped.reasons().size() == 1);
  CHECK_THAT(skipped.reasons()[0], Contains(place));
}

TEST_CASE("read: a truncated archive is refused though broken records are skipped", "[read]") {
  ReadOptions options;
  options.skip_broken = true;
  CHECK_THAT(test::error_of(kFiles / "broken_truncated.jsonl.gz", options), Contains("ends early"));
  CHECK_THAT(test::error_of(kFiles / "broken_truncated.jsonl.zst", options), Contains("ends early"));
}

TEST_CASE("read: an empty file holds no document", "[read]") { CHECK(test::texts_of(kFiles / "broken_empty.jsonl").empty()); }
