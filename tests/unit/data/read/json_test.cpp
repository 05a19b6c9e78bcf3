#include <catch2/catch.hpp>

#include "core/error.h"
#include "support/temp_dir.h"
#include "unit/data/read/texts.h"

namespace {

using namespace kf;
using Catch::Matchers::Contains;
using Texts = std::vector<std::string>;

}  // namespace

TEST_CASE("json: a list of records, one record, and records in a row", "[read]") {
  const test::TempDir dir;
  const auto [content, expected] = GENERATE(table<std::string, Texts>({
      {"[{\"text\": \"a\"},\n {\"text\": \"b, ] }\\\" \", \"x\": [1, [2]]}]\n", {"a", "b, ] }\" "}},
      {"{\n  \"text\": \"a\"\n}\n", {"a"}},
      {"{\"text\": \"a\"}\n{\"text\": \"b\"}\n", {"a", "b"}},
      {"{\"text\": \"a\"}{\"text\": \"b\"}", {"a", "b"}},
      {"[]", {}},
      {"", {}},
      {"\xef\xbb\xbf[{\"text\": \"\xc3\xa9\"}]", {"\xc3\xa9"}},
  }));
  dir.write("a.json", content);
  CHECK(test::texts_of(dir / "a.json") == expected);
}

TEST_CASE("json: what does not fit is named with its line", "[read]") {
  const test::TempDir dir;
  const auto [content, says] = GENERATE(table<std::string, std::string>({
      {"[\n{\"text\": \"a\"},\n{\"text\": 1}\n]", "a.json:3 (record 2): the text field"},
      {"[{\"text\": \"a\"}\n{\"text\": \"b\"}]", "a.json:2: not valid JSON: expected a comma"},
      {"[{\"text\": \"a\"},\n", "it ends early"},
      {"[{\"text\": \"a\n", "the end of the string of line 1"},
      {"[{\"text\": \"a\"}] x", "nothing behind the list"},
      {"[{\"text\": \"a\"},]", "expected a value"},
      {"[5]", "found a number"},
      {"{\"text\": tru}", "not valid JSON at byte"},
  }));
  CAPTURE(content);
  dir.write("a.json", content);
  CHECK_THAT(test::error_of(dir / "a.json"), Contains(says));
}

TEST_CASE("json: a broken element is left out where that is asked for", "[read]") {
  const test::TempDir dir;
  dir.write("a.json", "[{\"text\": \"a\"}, {\"text\": tru}, {\"text\": \"b\"}]");
  ReadOptions options;
  options.skip_broken = true;
  Skipped skipped;
  CHECK(test::texts_of(dir / "a.json", options, skipped) == Texts{"a", "b"});
  CHECK(skipped.count() == 1);
}
