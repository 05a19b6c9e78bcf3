#include <catch2/catch.hpp>

#include "train/eval/label_bytes.h"
#include "unit/generate/piece_tokenizer.h"

using namespace kf;
using kf::test::PieceTokenizer;

namespace {

std::int64_t bytes(const Tokenizer& tokenizer, const std::vector<std::int64_t>& tokens, const std::vector<std::int64_t>& labels) {
  return label_bytes(tokenizer, tokens, labels);
}

}  // namespace

TEST_CASE("bits per byte: byte ids count one each, the end of a document none") {
  CHECK(bytes(ByteTokenizer(), {'a', 'b', 256}, {'b', 256, 'c'}) == 2);
}

TEST_CASE("bits per byte: masked labels stand for nothing") {
  CHECK(bytes(ByteTokenizer(), {'a', 'b', 'c', 'd'}, {'b', -100, 'd', -100}) == 2);
  CHECK(bytes(ByteTokenizer(), {'a', 'b'}, {-100, -100}) == 0);
}

TEST_CASE("bits per byte: the space of a word counts although a text's first word drops it") {
  const PieceTokenizer pieces({"", " one", " three"}, true);
  CHECK(bytes(pieces, {1, 2}, {2, 1}) == 10);
  CHECK(bytes(pieces, {1, 2, 1}, {-100, 1, -100}) == 4);
  CHECK(bytes(pieces, {0, 2}, {2, 1}) == 9);  // behind the special id this is the first word
}
