// Text: documents, byte ids, JSON lines, the hold-out.

#include <set>

#include "core/error.h"
#include "data/digest.h"
#include "data/jsonl.h"
#include "data/selection.h"
#include "data/stream_dataset.h"
#include "data/text_documents.h"
#include "data/text_source.h"
#include "data/tokenizer/tokenizer.h"
#include "support/temp_dir.h"

#include <catch2/catch.hpp>

namespace {

using Catch::Contains;
using Ids = std::vector<std::int64_t>;
using kf::test::TempDir;

const kf::fs::path kFiles = kf::fs::path(KF_SOURCE_DIR) / "tests/unit/data/files";

kf::TextCorpus corpus_of(const std::vector<kf::fs::path>& files, const TempDir& folder) {
  return kf::read_text(files, folder.path(), "text", "");
}

/// The stream as text, an end of document as '|'.
std::string stream_of(const kf::Dataset& data, std::int64_t window) {
  std::string out;
  Ids ids(static_cast<std::size_t>(window));
  for (std::int64_t i = 0; i < data.size(); ++i) {
    data.get(i, ids);
    for (const std::int64_t id : ids) {
      out += id == kf::kByteEos ? '|' : static_cast<char>(id);
    }
  }
  return out;
}

std::vector<std::string> texts_of(const kf::fs::path& path, const std::string& field = "text") {
  std::vector<std::string> out;
  kf::for_each_jsonl_text(kf::read_file(path), field, path, [&](std::string_view text) { out.emplace_back(text); });
  return out;
}

kf::StreamDataset windows_of(kf::TextCorpus corpus, std::int64_t window) {
  return {std::make_shared<kf::TextDocuments>(std::move(corpus)), window, "data.dataset_path"};
}

std::vector<std::string> documents_of(const kf::Documents& documents) {
  std::vector<std::string> out;
  for (std::int64_t i = 0; i < documents.count(); ++i) {
    Ids ids(static_cast<std::size_t>(documents.length(i)));
    documents.read(documents.start(i), ids);
    out.emplace_back();
    for (const std::int64_t id : ids) {
      out.back() += id == kf::kByteEos ? '|' : static_cast<char>(id);
    }
  }
  return out;
}

kf::DocumentsPtr side_of(kf::TextCorpus corpus, double share, kf::Side side, std::int64_t window) {
  return kf::take_side(std::make_shared<kf::TextDocuments>(std::move(corpus)), share, side, window);
}

}  // namespace

TEST_CASE("text: documents are joined into one stream, each with its end, cut into windows across documents") {
  const TempDir folder;
  const std::vector<kf::fs::path> files{
      folder.write("a.txt", "hello"), folder.write("b.txt", ""), folder.write("c.md", "w"),
      folder.write("d.jsonl", "{\"text\": \"xy\"}\n\n{\"text\": \"\"}\n{\"n\": [{\"text\": 3}], \"text\": \"z\"}\n")};
  const kf::StreamDataset data = windows_of(corpus_of(files, folder), 3);
  CHECK(data.size() == 5);  // hello||w|xy||z|: 15 ids
  CHECK(stream_of(data, 3) == "hello||w|xy||z|");
  CHECK(data.describe() == "4 files, 9 B of text, 15 tokens (bytes)");
  Ids ids(3);
  CHECK_THROWS_AS(data.get(5, ids), kf::Error);
  CHECK_THROWS_AS(data.get(-1, ids), kf::Error);
  CHECK_THROWS_WITH(windows_of(corpus_of(files, folder), 16),
                    Contains("15 ids") && Contains("window of 16") && Contains("data.dataset_path"));
}

TEST_CASE("text: every window of every width is the same slice of the stream") {
  const TempDir folder;
  const std::vector<kf::fs::path> files{folder.write("a.txt", "abc"), folder.write("b.txt", "d"), folder.write("c.txt", "efghij")};
  for (std::int64_t window = 1; window <= 13; ++window) {
    const kf::StreamDataset data = windows_of(corpus_of(files, folder), window);
    CHECK(stream_of(data, window) == std::string("abc|d|efghij|").substr(0, static_cast<std::size_t>(13 / window * window)));
  }
}

TEST_CASE("text: bytes above 127 keep their values, also in a large mapped file") {
  const TempDir folder;
  std::string text;
  for (int i = 0; i < 1 << 20; ++i) {
    text += static_cast<char>(i % 256);
  }
  const kf::StreamDataset data = windows_of(corpus_of({folder.write("big.txt", text)}, folder), 256);
  Ids ids(256);
  data.get(4000, ids);
  for (std::size_t i = 0; i < 256; ++i) {
    CHECK(ids[i] == static_cast<std::int64_t>(i));
  }
}

TEST_CASE("text: a byte order mark is no part of it, in a small file and in a large mapped one") {
  const TempDir folder;
  const std::string size = GENERATE("small", "large");
  const std::string text = size == "small" ? "hello" : std::string(1 << 20, 'x');
  const kf::StreamDataset data = windows_of(corpus_of({folder.write("a.txt", "\xef\xbb\xbf" + text)}, folder), 3);
  Ids ids(3);
  data.get(0, ids);
  CHECK(ids == Ids(text.begin(), text.begin() + 3));
}

TEST_CASE("text: a file without a known name must be UTF-8") {
  const TempDir folder;
  CHECK(corpus_of({folder.write("README", "caf\xc3\xa9")}, folder).documents.size() == 1);
  CHECK_THROWS_WITH(kf::read_text({folder.write("blob", "\xff\xfe")}, folder.path(), "text", "; narrow it"),
                    Contains("blob") && Contains("not text") && Contains("narrow it"));
  CHECK_THROWS_AS(corpus_of({folder.write("ids", std::string("a\0b\0", 4))}, folder), kf::Error);
  CHECK(corpus_of({folder.write("latin.py", "caf\xe9")}, folder).documents.size() == 1);  // its name says text: the bytes are taken
}

TEST_CASE("jsonl: escapes are decoded and files with known faults are refused with their line") {
  CHECK(texts_of(kFiles / "docs.jsonl").size() == 40);
  CHECK_THROWS_WITH(texts_of(kFiles / "broken_invalid_line.jsonl"), Contains("broken_invalid_line.jsonl:7: not valid JSON"));
  CHECK_THROWS_WITH(texts_of(kFiles / "broken_missing_field.jsonl"),
                    Contains("broken_missing_field.jsonl:5:") && Contains("\"text\"") && Contains("content"));
  CHECK_THROWS_WITH(texts_of(kFiles / "broken_last_line_cut.jsonl"), Contains("broken_last_line_cut.jsonl:10:"));
  const TempDir folder;
  CHECK(texts_of(folder.write("e.jsonl", "{\"text\": \"\\u00fc\\ud83d\\ude00\\n\"}")) ==
        std::vector<std::string>{"\xc3\xbc\xf0\x9f\x98\x80\n"});
  CHECK(texts_of(folder.write("f.jsonl", "{\"body\": \"a\", \"text\": {\"body\": \"b\"}}\r\n"), "body") == std::vector<std::string>{"a"});
  CHECK(texts_of(folder.write("g.jsonl", "\n \n")).empty());
}

TEST_CASE("jsonl: a line that holds no text says what it holds") {
  const TempDir folder;
  const auto refused = [&](const std::string& line, const std::string& words) {
    CAPTURE(line);
    CHECK_THROWS_WITH(texts_of(folder.write("x.jsonl", "{\"text\": \"good\"}\n" + line + "\n")), Contains("x.jsonl:2:") && Contains(words));
  };
  refused("{\"text\": 5}", "is a number");
  refused("{\"text\": null}", "is null");
  refused("{\"text\": [\"a\"]}", "is a list");
  refused("{\"text\": {\"text\": \"a\"}}", "is an object");
  refused("[\"text\"]", "found a list");
  refused("\"text\"", "found a string");
  refused("3", "found a number");
  refused("{}", "no text field");
  refused("{\"a\": {\"text\": \"deep\"}}", "the keys are a");
  refused("{\"text\": \"a\"} x", "not valid JSON");
  refused("{\"text\": \"\\ud800\"}", "not valid JSON");
  refused("{\"text\": \"\xff\"}", "not valid JSON");
}

TEST_CASE("hold-out: documents are chosen by their text, whatever their order and company") {
  const TempDir folder;
  std::vector<kf::fs::path> files;
  for (int i = 0; i < 400; ++i) {
    files.push_back(folder.write(std::to_string(i) + ".txt", "document number " + std::to_string(i)));
  }
  const auto side = [&](const std::vector<kf::fs::path>& some, kf::Side which) {
    const auto documents = documents_of(*side_of(corpus_of(some, folder), 0.2, which, 8));
    return std::set<std::string>(documents.begin(), documents.end());
  };
  const auto training = side(files, kf::Side::training);
  const auto held = side(files, kf::Side::held_out);
  CHECK(training.size() + held.size() == 400);
  CHECK(held.size() > 50);
  CHECK(held.size() < 110);
  CHECK(side({files.rbegin(), files.rend()}, kf::Side::held_out) == held);
  const auto half = side({files.begin(), files.begin() + 200}, kf::Side::held_out);
  for (const std::string& text : half) {
    CHECK(held.count(text) == 1);
  }
}

TEST_CASE("hold-out: of a single document its end is held out") {
  const TempDir folder;
  const auto file = folder.write("book.txt", "abcdefghijklmnopqrs");  // 20 ids with its end
  const auto side = [&](kf::Side which, std::int64_t window) {
    return documents_of(*side_of(corpus_of({file}, folder), 0.25, which, window));
  };
  CHECK(side(kf::Side::training, 4) == std::vector<std::string>{"abcdefghijklmno"});
  CHECK(side(kf::Side::held_out, 4) == std::vector<std::string>{"pqrs|"});
  CHECK_THROWS_WITH(side(kf::Side::training, 6), Contains("data.holdout = 0.25") && Contains("leaves 15") && Contains("window of 6"));
}

TEST_CASE("tokenizer: bytes are their own ids and 256 is silent") {
  const kf::ByteTokenizer tokenizer(300);
  CHECK(tokenizer.encode("a\xff\n") == Ids{97, 255, 10});
  CHECK(tokenizer.decode(Ids{97, 256, 255, 299, 10}) == "a\xff\n");
  CHECK(tokenizer.eos_id() == 256);
  CHECK_THROWS_AS(tokenizer.decode(Ids{300}), kf::Error);
  CHECK_THROWS_AS(tokenizer.decode(Ids{-1}), kf::Error);
  CHECK_THROWS_WITH(kf::ByteTokenizer(256), Contains("model.vocab_size = 256") && Contains("257"));
}

TEST_CASE("digest: hashes are the same in every release") {
  // Held-out documents of runs that go on depend on these numbers.
  CHECK(kf::hash64("") == kf::hash64(std::string_view()));
  CHECK(kf::hash64("a") != kf::hash64(std::string_view("a\0", 2)));
  CHECK(kf::hash64("document") == 10946300270558817673u);
  CHECK(kf::hash64("a longer document") == 16838326605301412251u);
}
