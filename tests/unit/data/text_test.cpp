// Text: documents, byte ids, the hold-out.

#include <set>

#include "core/digest.h"
#include "core/error.h"
#include "core/log.h"
#include "data/documents/selection.h"
#include "data/documents/text_documents.h"
#include "data/documents/text_source.h"
#include "data/sequence/stream_dataset.h"
#include "data/tokenizer/tokenizer.h"
#include "support/temp_dir.h"

#include <catch2/catch.hpp>

namespace {

using Catch::Contains;
using Ids = std::vector<std::int64_t>;
using kf::test::TempDir;

kf::TextCorpus corpus_of(const std::vector<kf::fs::path>& files, const TempDir& folder) {
  return kf::read_text(files, folder.path(), false, "");
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
  const std::vector<kf::fs::path> files{folder.write("a.txt", "hello"), folder.write("b.txt", ""), folder.write("c.md", "w"),
                                        folder.write("d.txt", "xy"),    folder.write("e.txt", ""), folder.write("f.py", "z")};
  const kf::StreamDataset data = windows_of(corpus_of(files, folder), 3);
  CHECK(data.size() == 5);  // hello||w|xy||z|: 15 ids
  CHECK(stream_of(data, 3) == "hello||w|xy||z|");
  CHECK(data.describe() == "6 files, 9 B of text, 15 tokens (bytes)");
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
    text += i % 2 == 0 ? '\xc3' : static_cast<char>(0x80 + i / 2 % 64);
  }
  const kf::StreamDataset data = windows_of(corpus_of({folder.write("big.txt", text)}, folder), 256);
  Ids ids(256);
  data.get(4000, ids);
  for (std::size_t i = 0; i < 256; ++i) {
    CHECK(ids[i] == static_cast<unsigned char>(text[i]));
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

TEST_CASE("text: a file that is no UTF-8 is named with line and byte, or left out and counted") {
  const TempDir folder;
  const std::vector<kf::fs::path> files{folder.write("a.txt", "caf\xc3\xa9"), folder.write("b.py", "x\ncaf\xe9")};
  CHECK_THROWS_WITH(kf::read_text(files, folder.path(), false, "; narrow it"),
                    Contains("b.py:2: not valid UTF-8 at byte 6 of 6 (0xe9)") && Contains("narrow it"));
  const std::size_t warned = kf::log::count(kf::log::Level::warn);
  const kf::TextCorpus corpus = kf::read_text(files, folder.path(), true, "");
  CHECK(corpus.documents.size() == 1);
  CHECK(corpus.skipped == 1);
  CHECK(kf::log::count(kf::log::Level::warn) == warned + 2);
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
