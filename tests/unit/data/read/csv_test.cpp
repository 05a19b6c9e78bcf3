#include <catch2/catch.hpp>

#include "core/error.h"
#include "support/temp_dir.h"
#include "unit/data/read/texts.h"

namespace {

using namespace kf;
using Catch::Matchers::Contains;
using Texts = std::vector<std::string>;

}  // namespace

TEST_CASE("csv: quotes, line breaks inside fields, empty fields and both line ends", "[read]") {
  const test::TempDir dir;
  dir.write("a.csv", "\xef\xbb\xbfid,text,n\r\n1,plain,2\r\n2,\"a \"\"b\"\", c\nd\",3\n\n3,,\n4,it's \"so\",5");
  CHECK(test::texts_of(dir / "a.csv") == Texts{"plain", "a \"b\", c\nd", "", "it's \"so\""});
  dir.write("b.tsv", "text\tid\na, b\t1\n\"c\td\"\t2\n");
  CHECK(test::texts_of(dir / "b.tsv") == Texts{"a, b", "c\td"});
}

TEST_CASE("csv: fields across the reader's buffer stay whole", "[read]") {
  const test::TempDir dir;
  const std::string big((1 << 18) + 5, 'y');
  std::string content = "text\n";
  Texts expected;
  for (int i = 0; i < 3; ++i) {
    expected.push_back(big + std::to_string(i) + "\"\n");
    content += '"' + big + std::to_string(i) + "\"\"\n\"\n";
  }
  dir.write("a.csv", content);
  CHECK(test::texts_of(dir / "a.csv") == expected);
}

TEST_CASE("csv: what does not fit is named with its line", "[read]") {
  const test::TempDir dir;
  const auto [content, says] = GENERATE(table<std::string, std::string>({
      {"id,body\n1,x\n", "a.csv: no text field \"text\" (data.hf_dataset_text_field); the first row has the columns id, body"},
      {"text,text\n1,x\n", "several columns are called \"text\""},
      {"id,text\n1,\"x\ny\"\n2\n", "a.csv:4: a row of 1 fields, the first row has 2"},
      {"id,text\n1,\"x\n2,y\n", "a.csv:2: a quoted field is never closed"},
      {"id,text\n1,\"x\" y\n", "a.csv:2: ' ' behind the closing quote"},
      {"id,text\n1,\xff\n", "a.csv:2: the text field \"text\" (data.hf_dataset_text_field) is not valid UTF-8"},
  }));
  dir.write("a.csv", content);
  CHECK_THAT(test::error_of(dir / "a.csv"), Contains(says));
}

TEST_CASE("csv: an uneven row is left out where that is asked for", "[read]") {
  const test::TempDir dir;
  dir.write("a.csv", "id,text\n1,x\n2\n3,z\n");
  ReadOptions options;
  options.skip_broken = true;
  Skipped skipped;
  CHECK(test::texts_of(dir / "a.csv", options, skipped) == Texts{"x", "z"});
  CHECK(skipped.count() == 1);
}
