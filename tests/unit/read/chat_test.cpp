#include <catch2/catch.hpp>

#include "core/error.h"
#include "data/read/record_text.h"
#include "support/temp_dir.h"
#include "unit/read/texts.h"

namespace {

using namespace kf;
using Catch::Matchers::Contains;
using Texts = std::vector<std::string>;

const char* const kChat =
    "{\"messages\": [{\"role\": \"user\", \"content\": \"Hi\"}, {\"role\": \"assistant\", \"content\": \"Yes?\"}, "
    "{\"role\": \"user\", \"content\": \"Bye\"}, {\"role\": \"assistant\", \"content\": \"Ok\"}]}\n";

ReadOptions chat_options() {
  ReadOptions options;
  options.messages_field = "messages";
  return options;
}

}  // namespace

TEST_CASE("chat: answers count from their first character to the end of their message", "[read]") {
  const test::TempDir dir;
  const fs::path path = dir.write("a.jsonl", kChat);
  ReadOptions options = chat_options();
  options.answers_only = true;
  options.message_format = "<{role}>{content}</s>\n";
  Skipped skipped;
  const SourceFiles source = test::source_of(path);
  const std::unique_ptr<RecordReader> reader = open_records(source.files[0], {}, options, skipped);
  Record record;
  REQUIRE(reader->next(record));
  CHECK(record.text == "<user>Hi</s>\n<assistant>Yes?</s>\n<user>Bye</s>\n<assistant>Ok</s>");
  CHECK(record.masked);
  REQUIRE(record.counted.size() == 2);
  CHECK(record.text.substr(record.counted[0].begin, record.counted[0].end - record.counted[0].begin) == "Yes?</s>\n");
  CHECK(record.text.substr(record.counted[1].begin, record.counted[1].end - record.counted[1].begin) == "Ok</s>");
}

TEST_CASE("chat: content may be a list of text parts", "[read]") {
  const test::TempDir dir;
  dir.write("a.jsonl",
            "{\"messages\": [{\"role\": \"user\", \"content\": [{\"type\": \"text\", \"text\": \"a\"}, {\"type\": \"text\", \"text\": "
            "\"b\"}]}]}");
  CHECK(test::texts_of(dir / "a.jsonl", chat_options()) == Texts{"user: ab"});
}

TEST_CASE("chat: what is wrong with a message is said with its place", "[read]") {
  const test::TempDir dir;
  const auto [line, says] = GENERATE(table<std::string, std::string>({
      {"{\"chat\": []}", "no messages field \"messages\" (data.messages_field); the keys are chat"},
      {"{\"messages\": \"x\"}", "is a string, not a list of messages"},
      {"{\"messages\": []}", "is an empty list"},
      {"{\"messages\": [\"x\"]}", "message 0 is a string, not an object with role and content"},
      {"{\"messages\": [{\"role\": \"user\"}]}", "message 0 has no content; the keys are role"},
      {"{\"messages\": [{\"role\": \"user\", \"content\": null}]}", "message 0: content is null, not a string"},
      {"{\"messages\": [{\"role\": 1, \"content\": \"\"}]}", "message 0: role is a number, not a string"},
  }));
  dir.write("a.jsonl", line);
  CHECK_THAT(test::error_of(dir / "a.jsonl", chat_options()), Contains("a.jsonl:1: ") && Contains(says));
}

TEST_CASE("template: fields make a text, numbers too, and braces are doubled to stand for themselves", "[read]") {
  const test::TempDir dir;
  dir.write("a.jsonl", "{\"title\": \"T\", \"n\": 7, \"body\": \"B\"}\n");
  dir.write("a.csv", "title,n,body\nT,7,B\n");
  ReadOptions options;
  options.text_template = "{{{title}}}\n{n}: {body}{title}";
  CHECK(test::texts_of(dir / "a.jsonl", options) == Texts{"{T}\n7: BT"});
  CHECK(test::texts_of(dir / "a.csv", options) == Texts{"{T}\n7: BT"});
  options.text_template = "{title}{absent}";
  CHECK_THAT(test::error_of(dir / "a.jsonl", options), Contains("no field \"absent\" (data.text_template); the keys are title, n, body"));
}

TEST_CASE("template: one that makes no sense is refused as a setting", "[read]") {
  const auto [pattern, says] = GENERATE(table<std::string, std::string>({
      {"{title", "is not closed"},
      {"{}", "holds no name"},
      {"title}", "closes nothing"},
      {"title", "names no field"},
  }));
  ReadOptions options;
  options.text_template = pattern;
  CHECK_THROWS_WITH(RecordText(options), Contains(says));
  ReadOptions chat = chat_options();
  chat.message_format = "{role}";
  CHECK_THROWS_WITH(RecordText(chat), Contains("has no {content}"));
  chat.message_format = "{name}{content}";
  CHECK_THROWS_WITH(RecordText(chat), Contains("{name} is unknown"));
}

TEST_CASE("template: plain text has no fields", "[read]") {
  const test::TempDir dir;
  dir.write("a.txt", "text");
  CHECK_THAT(test::error_of(dir / "a.txt", chat_options()), Contains("is plain text, which has no fields"));
}
