#include <catch2/catch.hpp>

#include "generate/answer_stream.h"
#include "unit/generate/piece_tokenizer.h"

using namespace kf;
using kf::test::PieceTokenizer;

namespace {

/// Everything that the ids make certain, piece by piece, "|" between; "#" where a stop text ended it.
std::string streamed(const Tokenizer& tokenizer, const std::vector<std::int64_t>& ids, std::vector<std::string> stop = {}) {
  AnswerStream stream(tokenizer, {}, std::move(stop));
  std::string out;
  for (const std::int64_t id : ids) {
    out += stream.push(id) + "|";
    if (stream.stopped()) {
      return out + "#";
    }
  }
  return out + stream.finish();
}

const ByteTokenizer kBytes;

}  // namespace

TEST_CASE("answer: without stop texts every token is certain at once") { CHECK(streamed(kBytes, kBytes.encode("abc")) == "a|b|c|"); }

TEST_CASE("answer: a stop text that crosses tokens ends the text before it") {
  CHECK(streamed(kBytes, kBytes.encode("ab\n\ncd"), {"\n\n"}) == "a|b|||#");
  const PieceTokenizer pieces({"", "one EN", "D two", "x"}, false);
  CHECK(streamed(pieces, {3, 1, 2}, {"END"}) == "x|one ||#");
  CHECK(streamed(pieces, {1}, {"one"}) == "|#");
}

TEST_CASE("answer: what only began like a stop text comes after all") {
  CHECK(streamed(kBytes, kBytes.encode("a\nb"), {"\n\n"}) == "a||\nb|");
  CHECK(streamed(kBytes, kBytes.encode("a\n"), {"\n\n"}) == "a||\n");
  CHECK(streamed(kBytes, kBytes.encode("aab"), {"aac"}) == "||aab|");
}

TEST_CASE("answer: of several stop texts the first in the text counts, and overlapping beginnings are kept") {
  CHECK(streamed(kBytes, kBytes.encode("xabc"), {"bc", "abc"}) == "x||||#");
  CHECK(streamed(kBytes, kBytes.encode("ababac"), {"abac"}) == "|||ab|||#");
}

TEST_CASE("answer: a stop text that is a special token, or begins with one, ends the answer at the token, which has no text") {
  const auto tokenizer = open_tokenizer(std::string(KF_SOURCE_DIR) + "/tests/unit/data/tokenizer/files/byte_gpt2");
  const std::int64_t end = *tokenizer->token_id("</s>");
  std::vector<std::int64_t> ids = tokenizer->encode("ab<");
  ids.insert(ids.end(), {end, ids.front()});
  for (const char* stop : {"</s>", "</s>\n"}) {
    CHECK_THAT(streamed(*tokenizer, ids, {stop}), Catch::Matchers::EndsWith("<|#"));  // what looked like its beginning is text after all
  }
  CHECK_THAT(streamed(*tokenizer, ids), !Catch::Matchers::Contains("#"));
}

TEST_CASE("answer: a word keeps its space behind a prompt, and loses it at the start of a text") {
  const PieceTokenizer pieces({"", " one", " two"}, true);
  CHECK(streamed(pieces, {1, 2}) == "one| two|");
  AnswerStream behind(pieces, std::vector<std::int64_t>{1}, {});
  CHECK(behind.push(2) == " two");
  AnswerStream special(pieces, std::vector<std::int64_t>{0}, {});
  CHECK(special.push(2) == "two");
}

TEST_CASE("characters: only whole ones come, and what is none comes as U+FFFD") {
  WholeCharacters characters;
  CHECK(characters.push("a\xE2\x82") == "a");
  CHECK(characters.push("\xAC!") == "\xE2\x82\xAC!");
  CHECK(characters.push("\xF0\x9F\x98").empty());
  CHECK(characters.finish() == "\xEF\xBF\xBD");
  CHECK(characters.finish().empty());
  CHECK(valid_utf8("plain \xC3\xA4") == "plain \xC3\xA4");
  CHECK(valid_utf8("\xFFz") == "\xEF\xBF\xBDz");
  CHECK(valid_utf8("\xE2\x82z") == "\xEF\xBF\xBDz");                                            // one mark for the beginning of a character
  CHECK(valid_utf8("\xED\xA0\x80") == "\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD");                  // a surrogate
  CHECK(valid_utf8("\xC0\x80") == "\xEF\xBF\xBD\xEF\xBF\xBD");                                  // overlong
  CHECK(valid_utf8("\xF4\x90\x80\x80") == "\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD");  // beyond U+10FFFF
}
