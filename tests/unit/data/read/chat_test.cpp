#include <catch2/catch.hpp>

#include <algorithm>

#include "core/error.h"
#include "data/chat/chat_format.h"
#include "data/read/record_text.h"
#include "support/temp_dir.h"
#include "unit/data/read/texts.h"

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
      {"{\"messages\": [{\"role\": \"user\", \"content\": 3}]}", "message 0: content is a number, not a string"},
      {"{\"messages\": [{\"role\": \"user\", \"content\": [{\"type\": \"image\"}]}]}", "message 0: content has a part that is no text"},
      {"{\"messages\": [{\"role\": 1, \"content\": \"\"}]}", "message 0: role is a number, not a string"},
  }));
  dir.write("a.jsonl", line);
  CHECK_THAT(test::error_of(dir / "a.jsonl", chat_options()), Contains("a.jsonl:1: ") && Contains(says));
}

namespace {

/// What a reader makes of one line: the text, with what the format wrote in <> and what counts in ().
std::string shown(const fs::path& path, const ReadOptions& options) {
  Skipped skipped;
  const SourceFiles source = test::source_of(path);
  const std::unique_ptr<RecordReader> reader = open_records(source.files[0], {}, options, skipped);
  Record record;
  REQUIRE(reader->next(record));
  std::string out;
  const auto starts = [&](const std::vector<ByteRange>& ranges, std::size_t at) {
    return std::any_of(ranges.begin(), ranges.end(), [&](const ByteRange& range) { return range.begin == at; });
  };
  const auto ends = [&](const std::vector<ByteRange>& ranges, std::size_t at) {
    return std::any_of(ranges.begin(), ranges.end(), [&](const ByteRange& range) { return range.end == at; });
  };
  for (std::size_t i = 0; i <= record.text.size(); ++i) {
    out += ends(record.written, i) ? ">" : "";
    out += ends(record.counted, i) ? ")" : "";
    out += starts(record.counted, i) ? "(" : "";
    out += starts(record.written, i) ? "<" : "";
    out += i < record.text.size() ? std::string(1, record.text[i]) : "";
  }
  return out;
}

std::shared_ptr<const ChatFormat> by_template(const std::string& source) {
  ChatOptions options;
  options.chat_template = source;
  options.template_name = "test";
  options.variables.put("bos_token", jinja::Value::text("^"));
  return std::make_shared<const ChatFormat>(std::move(options));
}

constexpr const char* kMarks =
    "{{ bos_token }}{% for m in messages %}[{{ m.role }}]{{ m.content | trim }}{% for c in m.tool_calls or [] %}!{{ c.function | tojson }}"
    "{% endfor %}$\n{% endfor %}{% if add_generation_prompt %}[assistant]{% endif %}";

}  // namespace

TEST_CASE("chat: shapes of published data sets are read: null, tool calls, ShareGPT, names of one's own, lists in strings") {
  const test::TempDir dir;
  ReadOptions options = chat_options();
  const auto text = [&](const std::string& line) { return test::texts_of(dir.write("a.jsonl", line), options); };
  const std::string call =
      "{\"role\": \"assistant\", \"content\": null, \"tool_calls\": [{\"id\": \"c\", \"type\": \"function\", \"function\": {\"name\": "
      "\"w\", \"arguments\": \"{}\"}}]}";
  CHECK(text("{\"messages\": [" + call + ", {\"role\": \"tool\", \"content\": \"Sunny\"}]}") == Texts{"assistant: \ntool: Sunny"});
  CHECK(text("{\"messages\": [{\"role\": \"assistant\", \"tool_calls\": [{}]}, {\"role\": \"x\", \"content\": \"y\"}]}") ==
        Texts{"assistant: \nx: y"});
  CHECK(text("{\"messages\": \"[{\\\"role\\\": \\\"user\\\", \\\"content\\\": \\\"in a string\\\"}]\"}") == Texts{"user: in a string"});
  options.messages_field = "conversations";
  CHECK(text("{\"conversations\": [{\"from\": \"system\", \"value\": \"s\"}, {\"from\": \"human\", \"value\": \"hi\"}, {\"from\": \"gpt\", "
             "\"value\": \"hello\"}, {\"from\": \"observation\", \"value\": \"o\"}]}") ==
        Texts{"system: s\nuser: hi\nassistant: hello\ntool: o"});
  options.messages_field = "deep.0.chat";
  options.role_field = "who";
  options.content_field = "says";
  CHECK(text("{\"deep\": [{\"chat\": [{\"who\": \"me\", \"says\": \"this\"}]}]}") == Texts{"me: this"});
}

TEST_CASE("chat: tool calls are left out, written as JSON, or refused") {
  const test::TempDir dir;
  const fs::path path =
      dir.write("a.jsonl",
                "{\"messages\": [{\"role\": \"assistant\", \"content\": \"So:\", \"tool_calls\": [{\"function\": {\"name\": "
                "\"w\", \"arguments\": {\"a\": 1}}}, {\"name\": \"v\"}]}]}");
  ReadOptions options = chat_options();
  const auto with = [&](ChatOptions::ToolCalls how) {
    ChatOptions chat;
    chat.tool_calls = how;
    options.chat = std::make_shared<const ChatFormat>(std::move(chat));
    return options;
  };
  CHECK(test::texts_of(path, with(ChatOptions::ToolCalls::drop)) == Texts{"assistant: So:"});
  CHECK(options.chat->dropped_calls() == 1);
  CHECK(test::texts_of(path, with(ChatOptions::ToolCalls::json)) ==
        Texts{"assistant: So:\n{\"name\":\"w\",\"arguments\":{\"a\":1}}\n{\"name\":\"v\"}"});
  CHECK_THAT(test::error_of(path, with(ChatOptions::ToolCalls::error)),
             Contains("a.jsonl:1: message 0 calls tools") && Contains("data.tool_calls"));
}

TEST_CASE("chat: what the format writes is told from what is said, so that nobody can write a format's marks") {
  const test::TempDir dir;
  ReadOptions options = chat_options();
  options.answers_only = true;
  options.message_format = "[{role}]{content}$\n";
  const fs::path path = dir.write("a.jsonl",
                                  "{\"messages\": [{\"role\": \"user\", \"content\": \"$\\n[x]\"}, {\"role\": \"assistant\", \"content\": "
                                  "\"no\"}]}");
  CHECK(shown(path, options) == "<[>user<]>$\n[x]<$\n[>assistant<]>(no<$>)");
  options.ask = true;
  CHECK(shown(path, options) == "<[>user<]>$\n[x]<$\n[>assistant<]>(no<$\n)[>assistant<]>");
}

TEST_CASE("chat: a template writes the same chat in its own way; answers go from where it asks to what it writes behind them") {
  const test::TempDir dir;
  ReadOptions options = chat_options();
  options.answers_only = true;
  options.chat = by_template(kMarks);
  const fs::path path = dir.write(
      "a.jsonl",
      "{\"messages\": [{\"role\": \"user\", \"content\": \" $ \"}, {\"role\": \"assistant\", \"content\": \"A\"}, {\"role\": \"user\", "
      "\"content\": \"A\"}, {\"role\": \"assistant\", \"content\": null, \"tool_calls\": [{\"function\": {\"name\": \"w\", \"arguments\": "
      "\"{\\\"k\\\": 1}\"}}]}]}");
  CHECK(shown(path, options) ==
        "<^[>user<]>$<$\n[>assistant<]>(A<$\n)[>user<]>A<$\n[>assistant<](!>{\"name\": \"w\", \"arguments\": {\"k\": 1}}<$>)");
  options.ask = true;
  options.answers_only = false;
  CHECK(shown(path, options) ==
        "<^[>user<]>$<$\n[>assistant<]>A<$\n[>user<]>A<$\n[>assistant<]!>{\"name\": \"w\", \"arguments\": {\"k\": 1}}<$\n[assistant]>");
  options.ask = false;
  options.answers_only = true;
  options.chat = by_template(
      "{% for m in messages %}{% if m.role == 'assistant' %}a{% generation %}{{ m.content }}${% endgeneration %}{% else %}{{ m.content "
      "}}{% endif %}{% endfor %}");
  CHECK(shown(dir.write("b.jsonl", kChat), options) == "Hi<a>(Yes?<$>)Bye<a>(Ok<$>)");
  options.chat = by_template("{{ raise_exception('not this') }}");
  CHECK_THAT(test::error_of(path, options), Contains("a.jsonl:1: ") && Contains("not this") && Contains("in the chat template of test"));
}

TEST_CASE("chat: a template that writes earlier answers differently still has their borders") {
  const test::TempDir dir;
  ReadOptions options = chat_options();
  options.answers_only = true;
  // Thoughts stay in the last answer alone, which also begins with an empty one where it has none.
  options.chat = by_template(
      "{% for m in messages %}[{{ m.role }}]{% if m.role == 'assistant' and loop.last and '/t' not in m.content %}(t/t){% endif %}"
      "{{ m.content.split('/t')[-1] if not loop.last else m.content }}$\n{% endfor %}{% if add_generation_prompt %}[assistant]{% endif %}");
  const std::string chat =
      "{\"messages\": [{\"role\": \"user\", \"content\": \"1\"}, {\"role\": \"assistant\", \"content\": \"hm/tA\"}, {\"role\": \"user\", "
      "\"content\": \"2\"}, {\"role\": \"assistant\", \"content\": \"B\"}]}";
  CHECK(shown(dir.write("a.jsonl", chat), options) == "<[>user<]>1<$\n[>assistant<]>(A<$\n)[>user<]>2<$\n[>assistant<]((t/t)>B<$>)");
}

TEST_CASE("pair: a prompt and its completion, of which the completion counts") {
  const test::TempDir dir;
  ReadOptions options;
  options.prompt_field = "prompt";
  options.completion_field = "completion";
  options.answers_only = true;
  CHECK(shown(dir.write("a.jsonl", "{\"prompt\": \"two\", \"completion\": \" is four\"}"), options) == "two( is four)");
  CHECK(shown(dir.write("a.csv", "prompt,completion\ntwo, is four\n"), options) == "two( is four)");
  options.message_format = "[{role}]{content}$\n";
  const std::string lists =
      "{\"prompt\": [{\"role\": \"user\", \"content\": \"1\"}, {\"role\": \"assistant\", \"content\": \"2\"}, {\"role\": \"user\", "
      "\"content\": \"3\"}], \"completion\": [{\"role\": \"assistant\", \"content\": \"4\"}]}";
  CHECK(shown(dir.write("b.jsonl", lists), options) == "<[>user<]>1<$\n[>assistant<]>2<$\n[>user<]>3<$\n[>assistant<]>(4<$>)");
  options.prompt_as_chat = true;
  CHECK(shown(dir / "a.jsonl", options) == "<[>user<]>two<$\n[>assistant<]>( is four<$>)");
  CHECK(shown(dir / "a.csv", options) == "<[>user<]>two<$\n[>assistant<]>( is four<$>)");
}

TEST_CASE("pair: a prompt of several fields, of which some may be empty or missing; Alpaca's by its name") {
  const test::TempDir dir;
  ReadOptions options;
  options.prompt_template = "{q}{note?\n(}\n";
  options.completion_field = "a";
  options.answers_only = true;
  CHECK(shown(dir.write("a.jsonl", "{\"q\": \"Q\", \"note\": \"N\", \"a\": \"A\"}"), options) == "Q<\n(>N<\n>(A)");
  CHECK(shown(dir.write("a.jsonl", "{\"q\": \"Q\", \"note\": \"\", \"a\": \"A\"}"), options) == "Q<\n>(A)");
  CHECK(shown(dir.write("a.jsonl", "{\"q\": \"Q\", \"note\": null, \"a\": \"A\"}"), options) == "Q<\n>(A)");
  CHECK(shown(dir.write("a.jsonl", "{\"q\": \"Q\", \"a\": \"A\"}"), options) == "Q<\n>(A)");
  CHECK(shown(dir.write("a.csv", "q,a\nQ,A\n"), options) == "Q<\n>(A)");
  options.prompt_template = "alpaca";
  options.completion_field = "output";
  const fs::path with = dir.write("b.jsonl", "{\"instruction\": \"I\", \"input\": \"N\", \"output\": \"O\"}");
  const fs::path without = dir.write("c.jsonl", "{\"instruction\": \"I\", \"input\": \"\", \"output\": \"O\"}");
  CHECK_THAT(shown(with, options), Contains("### Instruction:\n>I<\n\n### Input:\n>N<\n\n### Response:\n>(O)"));
  CHECK_THAT(shown(without, options), Contains("### Instruction:\n>I<\n\n### Response:\n>(O)"));
  options.prompt_as_chat = true;
  CHECK(test::texts_of(with, options) == Texts{"user: I\n\nN\nassistant: O"});
  CHECK(test::texts_of(without, options) == Texts{"user: I\nassistant: O"});
}

TEST_CASE("fields: a name with dots goes into objects and lists, unless a field has that name") {
  const test::TempDir dir;
  ReadOptions options;
  options.text_field = "a.b.1";
  CHECK(test::texts_of(dir.write("a.jsonl", "{\"a\": {\"b\": [\"x\", \"y\"]}}\n{\"a.b.1\": \"z\"}\n"), options) == Texts{"y", "z"});
  options.text_template = "{a.b}-{c}";
  CHECK(test::texts_of(dir.write("a.jsonl", "{\"a\": {\"b\": 1}, \"c\": \"d\"}\n"), options) == Texts{"1-d"});
  options.text_template.clear();
  CHECK_THAT(test::error_of(dir.write("a.jsonl", "{\"a\": {\"b\": [\"x\"]}}\n"), options), Contains("no text field \"a.b.1\""));
}

TEST_CASE("fields: a record without its text that holds a chat names the setting") {
  const test::TempDir dir;
  CHECK_THAT(test::error_of(dir.write("a.jsonl", kChat), ReadOptions()), Contains("data.messages_field = \"messages\" reads chats"));
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
