// The samples of tests/unit/data/read/files, as formats.json there describes them.

#include <catch2/catch.hpp>

#include "core/error.h"
#include "unit/data/read/samples.h"

namespace {

using namespace kf;
using Catch::Matchers::Contains;

}  // namespace

TEST_CASE("read: text, JSON lines, gzip and zstd give the samples' documents", "[read]") {
  test::check_sample(GENERATE(as<std::string>{}, "docs.jsonl", "docs.jsonl.gz", "docs.jsonl.zst", "plain.txt"));
}

TEST_CASE("read: a chat's text is its messages by role, a line each", "[read]") {
  ReadOptions options;
  options.messages_field = "messages";
  test::check_sample("chat.jsonl", options);
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
  const std::string message = test::error_of(test::sample(broken.file));
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
  CHECK(test::texts_of(test::sample(name), options, skipped).size() == good);
  CHECK(skipped.count() == 1);
  REQUIRE(skipped.reasons().size() == 1);
  CHECK_THAT(skipped.reasons()[0], Contains(place));
}

TEST_CASE("read: a truncated archive is refused though broken records are skipped", "[read]") {
  ReadOptions options;
  options.skip_broken = true;
  CHECK_THAT(test::error_of(test::sample("broken_truncated.jsonl.gz"), options), Contains("ends early"));
  CHECK_THAT(test::error_of(test::sample("broken_truncated.jsonl.zst"), options), Contains("ends early"));
}

TEST_CASE("read: an empty file holds no document", "[read]") { CHECK(test::texts_of(test::sample("broken_empty.jsonl")).empty()); }
