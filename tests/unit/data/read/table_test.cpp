// Parquet and Arrow. The odd files of tests/unit/data/read/tables are made by make_tables.py there.

#include <catch2/catch.hpp>

#include "core/error.h"
#include "support/temp_dir.h"
#include "unit/data/read/samples.h"
#include "unit/data/read/texts.h"

namespace {

using namespace kf;
using Catch::Matchers::Contains;
using Texts = std::vector<std::string>;

const fs::path kTables = fs::path(KF_SOURCE_DIR) / "tests/unit/data/read/tables";

}  // namespace

TEST_CASE("tables: Parquet and the folder that datasets saves give the samples' documents", "[read]") {
  test::check_sample(GENERATE(as<std::string>{}, "docs_snappy.parquet", "docs_zstd.parquet", "docs_save_to_disk"));
}

TEST_CASE("tables: broken samples are refused with the column, its type and what there is", "[read]") {
  CHECK_THAT(
      test::error_of(test::sample("broken_wrong_type.parquet")),
      Contains("broken_wrong_type.parquet: the text field \"text\" (data.hf_dataset_text_field) is a column of int64, not of strings"));
  CHECK_THAT(test::error_of(test::sample("broken_missing_column.parquet")),
             Contains("no text field \"text\"") && Contains("the columns are id, body"));
  CHECK(test::texts_of(test::sample("broken_zero_rows.parquet")).empty());
}

TEST_CASE("tables: a cut file is refused wherever it is cut", "[read]") {
  const test::TempDir dir;
  const auto [name, step] = GENERATE(table<std::string, std::size_t>(
      {{"files/docs_snappy.parquet", 997}, {"files/docs_save_to_disk/data-00000-of-00002.arrow", 101}, {"tables/chat_file.arrow", 53}}));
  const std::string whole = read_file(fs::path(KF_SOURCE_DIR) / "tests/unit/data/read" / name);
  ReadOptions options;
  options.messages_field = name == "tables/chat_file.arrow" ? "messages" : "";
  const std::string suffix = fs::path(name).extension().string();
  for (std::size_t size = 0; size < whole.size(); size += step) {
    CAPTURE(size, whole.size());
    dir.write("cut" + suffix, whole.substr(0, size));
    CHECK(!test::error_of(dir / ("cut" + suffix), options).empty());
  }
}

TEST_CASE("tables: a stream cut between two batches is refused", "[read]") {
  const test::TempDir dir;
  const std::string whole = read_file(test::sample("docs_save_to_disk/data-00000-of-00002.arrow"));
  dir.write("cut.arrow", whole.substr(0, whole.size() - 8));  // the mark of the end
  CHECK_THAT(test::error_of(dir / "cut.arrow"), Contains("ends early"));
}

TEST_CASE("tables: parts of a Parquet file give the rows of the whole, each once", "[read]") {
  const Texts whole = test::texts_of(test::sample("docs_snappy.parquet"));
  for (const std::int64_t bytes : {1, 100, 1000, 5000, 10000}) {
    CAPTURE(bytes);
    CHECK(test::texts_in_parts(test::sample("docs_snappy.parquet"), bytes) == whole);
  }
}

TEST_CASE("tables: every string type, dictionaries and compressions read alike", "[read]") {
  const Texts expected{"a", "b\xc3\xa9", "", "a"};
  const auto name = GENERATE(as<std::string>{}, "string.parquet", "large_string.parquet", "dictionary.parquet", "gzip.parquet",
                             "string_view.arrow", "dictionary.arrow", "large_string.arrow", "lz4.arrow");
  CAPTURE(name);
  CHECK(test::texts_of(kTables / name) == expected);
}

TEST_CASE("tables: chats are lists of structs, as the JSON lines of the same chat", "[read]") {
  ReadOptions options;
  options.messages_field = "messages";
  const Texts expected{"user: Hi\nassistant: Yes?", "system: Be\nuser: Bye\nassistant: Ok"};
  for (const char* name : {"chat.parquet", "chat_file.arrow", "chat_large.arrow"}) {
    CAPTURE(name);
    CHECK(test::texts_of(kTables / name, options) == expected);
  }
  CHECK(test::texts_of(kTables / "chat_null.parquet", options) == Texts{"user: Hi\nassistant: Yes?", "user: "});
  options.messages_field = "text";
  CHECK_THAT(test::error_of(kTables / "string.parquet", options),
             Contains("row 0: the messages field \"text\"") && Contains("not a list of messages"));
  options.messages_field = "id";
  CHECK_THAT(test::error_of(kTables / "chat.parquet", options), Contains("is no list of messages: its type is int64"));
}

TEST_CASE("tables: chats, pairs and nested fields of every shape are read as the JSON lines of the same record", "[read]") {
  for (const char* name : {"shapes.parquet", "shapes.arrow"}) {
    CAPTURE(name);
    const auto chat = [&](const char* field) {
      ReadOptions options;
      options.messages_field = field;
      return test::texts_of(kTables / name, options);
    };
    CHECK(chat("conversations") == Texts{"user: hi \"\\\n\nassistant: hello"});
    CHECK(chat("calls") == Texts{"user: w?\nassistant: "});
    CHECK(chat("parts") == Texts{"user: ab"});
    CHECK(chat("string") == Texts{"user: in a string"});
    ReadOptions options;
    options.prompt_field = "prompt";
    options.completion_field = "completion";
    CHECK(test::texts_of(kTables / name, options) == Texts{"two is four"});
    ReadOptions nested;
    nested.text_template = "{deep.n}{deep.t.1}{deep.b}{deep.none?!}{missing?!}";
    CHECK(test::texts_of(kTables / name, nested) == Texts{"3ytrue"});
    nested.text_template.clear();
    nested.text_field = "deep.t.0";
    CHECK(test::texts_of(kTables / name, nested) == Texts{"x"});
    nested.text_field = "nothing.t";
    CHECK_THAT(test::error_of(kTables / name, nested),
               Contains("no text field \"nothing.t\"") && Contains("the columns are conversations"));
  }
}

TEST_CASE("tables: null is a broken record, named by its row, and can be left out", "[read]") {
  CHECK_THAT(test::error_of(kTables / "null.parquet"), Contains("null.parquet: row 2: the text field") && Contains("is null"));
  ReadOptions options;
  options.skip_broken = true;
  Skipped skipped;
  CHECK(test::texts_of(kTables / "null.parquet", options, skipped) == Texts{"a", "b", "d"});
  CHECK(skipped.count() == 1);
}

TEST_CASE("tables: templates print numbers", "[read]") {
  ReadOptions options;
  options.text_template = "{n}: {text}";
  CHECK(test::texts_of(kTables / "string.parquet", options) == Texts{"1: a", "2: b\xc3\xa9", "3: ", "4: a"});
}

TEST_CASE("tables: a column without UTF-8 is named by its row", "[read]") {
  CHECK_THAT(test::error_of(kTables / "invalid_utf8.parquet"), Contains("row 1: not valid UTF-8 at byte 2 of 3"));
}

TEST_CASE("tables: a folder that DatasetDict saves is read by its split", "[read]") {
  SourceRequest request;
  request.paths = {(kTables / "dict").string()};
  request.hf_split = "test";
  CHECK(resolve_source(request).files.size() == 1);
  request.hf_split = "validation";
  CHECK_THROWS_WITH(resolve_source(request), Contains("holds no split \"validation\""));
}
