#include <catch2/catch.hpp>

#include "core/error.h"
#include "train/eval/choice_file.h"
#include "train/eval/rolling.h"
#include "unit/generate/piece_tokenizer.h"

using namespace kf;
using Catch::Contains;
using kf::test::PieceTokenizer;
using Ids = std::vector<std::int64_t>;

TEST_CASE("choices: each accepted name reads, other keys and blank lines are passed over") {
  const auto items = parse_choices(
      "{\"prompt\": \"a\", \"choices\": [\"x\", \"y\"], \"answer\": 1, \"id\": 7}\n\n"
      "{\"context\": \"\", \"choices\": [\"x\", \"y\", \"z\"], \"gold\": 2}\r\n"
      "{\"query\": \"q\", \"choices\": [\"x\", \"y\"], \"gold\": 0}",
      "f.jsonl");
  REQUIRE(items.size() == 3);
  CHECK(items[0].context == "a");
  CHECK(items[0].answer == 1);
  CHECK(items[1].choices.size() == 3);
  CHECK(items[1].line == 3);
  CHECK(items[2].answer == 0);
}

TEST_CASE("choices: a faulty record is named with file, line and what was expected") {
  const auto bad = [](const std::string& line, const std::string& says) {
    CAPTURE(line);
    CHECK_THROWS_WITH(parse_choices("\n" + line, "f.jsonl"), Contains("f.jsonl:2") && Contains(says));
  };
  bad("[1]", "expected an object");
  bad("{\"choices\": [\"x\", \"y\"], \"gold\": 0}", "no \"prompt\" or \"context\" or \"query\"");
  bad("{\"prompt\": \"a\", \"query\": \"b\", \"choices\": [\"x\", \"y\"], \"gold\": 0}", "say the same");
  bad("{\"prompt\": 1, \"choices\": [\"x\", \"y\"], \"gold\": 0}", "is no string");
  bad("{\"prompt\": \"a\", \"choices\": [\"x\"], \"gold\": 0}", "two or more");
  bad("{\"prompt\": \"a\", \"choices\": [\"x\", \"\"], \"gold\": 0}", "choice 1");
  bad("{\"prompt\": \"a\", \"choices\": [\"x\", \"y\"], \"gold\": 2}", "from 0 to 1");
  bad("{\"prompt\": \"a\", \"choices\": [\"x\", \"y\"], \"gold\": \"A\"}", "from 0 to 1");
  bad("{\"prompt\": \"a\", \"choices\": [\"x\", \"y\"", "f.jsonl:2");
  CHECK_THROWS_WITH(parse_choices("\n \n", "f.jsonl"), Contains("holds no question"));
}

TEST_CASE("choices: the continuation is what the whole has beyond the context's ids") {
  const ByteTokenizer bytes;
  const ChoiceIds plain = encode_choice(bytes, "ab", " c");
  CHECK(plain.ids == Ids{'a', 'b', ' ', 'c'});
  CHECK(plain.continuation == 2);
  const ChoiceIds moved = encode_choice(bytes, "ab \n", "c");  // white space at the end goes along
  CHECK(moved.ids == Ids{'a', 'b', ' ', '\n', 'c'});
  CHECK(moved.continuation == 3);
  const ChoiceIds empty = encode_choice(bytes, "", " c");
  CHECK(empty.ids == Ids{256, ' ', 'c'});
  CHECK(empty.continuation == 2);
  CHECK(encode_choice(bytes, "  ", "c").ids == Ids{256, ' ', ' ', 'c'});
  const ChoiceIds wide = encode_choice(bytes, "a\u3000\u00a0", "c");  // white space as Python has it
  CHECK(wide.continuation == 6);
}

TEST_CASE("choices: a token that crosses the border belongs to the context's count") {
  const PieceTokenizer pieces({"", "a", "b", "ab", "c"}, false);
  const ChoiceIds merged = encode_choice(pieces, "a", "bc");  // "ab", "c": one id less than the context's one is left
  CHECK(merged.ids == Ids{3, 4});
  CHECK(merged.continuation == 1);
  CHECK_THROWS_WITH(encode_choice(pieces, "a", "b"), Contains("nothing is left"));
  CHECK_THROWS_WITH(encode_choice(PieceTokenizer({"a"}, false), "", "a"), Contains("no id that begins"));
}

TEST_CASE("documents: windows score every token once, and the last one is filled up with what comes before it") {
  // lm_eval.utils.get_rolling_token_windows(range(10), prefix, max_seq_len, 1) with make_disjoint_window, for prefix 99 and max_seq_len 4.
  const Ids ids{0, 1, 2, 3, 4, 5, 6, 7, 8, 9};
  const std::vector<ChoiceIds> windows = rolling_windows(ids, 99, 4);
  REQUIRE(windows.size() == 3);
  CHECK(windows[0].ids == Ids{99, 0, 1, 2, 3});
  CHECK(windows[0].continuation == 4);
  CHECK(windows[1].ids == Ids{3, 4, 5, 6, 7});
  CHECK(windows[1].continuation == 4);
  CHECK(windows[2].ids == Ids{5, 6, 7, 8, 9});
  CHECK(windows[2].continuation == 2);
  CHECK(rolling_windows({7}, 99, 4).front().ids == Ids{99, 7});
  CHECK(rolling_windows({}, 99, 4).empty());
}

TEST_CASE("documents: words are what Python's re.split gives") {
  CHECK(count_words("") == 1);
  CHECK(count_words("one") == 1);
  CHECK(count_words(" one  two\n\nthree ") == 5);  // '', 'one', 'two', 'three', ''
  CHECK(count_words("K\u00f6ln\u3000am\u00a0Rhein") == 3);
}
