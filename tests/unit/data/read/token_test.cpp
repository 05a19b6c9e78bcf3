// Token files and the index of Megatron data sets, as `data info` sees them.

#include <catch2/catch.hpp>

#include <cstring>

#include "core/error.h"
#include "data/file/megatron.h"
#include "data/read/info.h"
#include "support/temp_dir.h"
#include "unit/data/read/samples.h"

namespace {

using namespace kf;
using Catch::Matchers::Contains;

template <class T>
void put(std::string& out, T value) {
  out.append(reinterpret_cast<const char*>(&value), sizeof(T));
}

struct Index {
  std::uint64_t version = 1;
  std::uint8_t code = 8;
  std::vector<std::int32_t> sizes{2, 3};
  std::vector<std::int64_t> pointers{0, 4};
  std::vector<std::int64_t> documents{0, 1, 2};
};

std::string bytes_of(const Index& index) {
  std::string out("MMIDIDX\0\0", 9);
  put(out, index.version);
  put(out, index.code);
  put(out, static_cast<std::uint64_t>(index.sizes.size()));
  put(out, static_cast<std::uint64_t>(index.documents.size()));
  for (const auto size : index.sizes) {
    put(out, size);
  }
  for (const auto pointer : index.pointers) {
    put(out, pointer);
  }
  for (const auto document : index.documents) {
    put(out, document);
  }
  return out;
}

MegatronIndex parse(const std::string& bytes) {
  return parse_megatron_index({reinterpret_cast<const std::byte*>(bytes.data()), bytes.size()}, "a.idx");
}

void check_tokens(const std::string& name, const TokenInfoOptions& options) {
  CAPTURE(name);
  const nlohmann::json expected = test::sample_entry(name);
  const SourceInfo info = inspect_tokens(test::source_of(test::sample(name)), options);
  CHECK(info.ids == expected.at("tokens"));
  CHECK(info.sha256 == expected.at("sha256_tokens_uint32_le"));
  CHECK(info.documents == expected.at("documents").get<std::int64_t>());
}

}  // namespace

TEST_CASE("tokens: the samples give their ids, documents and types", "[read]") {
  TokenInfoOptions options;
  options.eos_id = 0;
  check_tokens("real_uint16.npy", options);
  check_tokens("real_uint32.npy", options);
  check_tokens("megatron_uint16.bin", {});  // its index says type and documents
  options.file.raw_type = TokenType::uint16;
  check_tokens("olmo_uint16.npy", options);
  options.file.raw_type = TokenType::uint32;
  check_tokens("olmo_uint32.npy", options);
}

TEST_CASE("tokens: broken samples are refused with what is wrong", "[read]") {
  const auto error = [](const std::string& name, const TokenInfoOptions& options) {
    try {
      inspect_tokens(test::source_of(test::sample(name)), options);
    } catch (const Error& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  TokenInfoOptions options;
  options.file.raw_type = TokenType::uint16;
  options.file.vocab_size = 512;
  CHECK_THAT(error("broken_out_of_vocab_uint16.npy", options),
             Contains("token 1000 (from 0) is id 512") && Contains("model.vocab_size = 512"));
  CHECK_THAT(error("broken_odd_length_uint16.npy", options), Contains("2001 bytes are not a whole number of uint16 ids"));
  CHECK_THAT(error("broken_short_real.npy", {}), Contains("6461 ids of 8 bytes, but 50688 bytes follow"));
  CHECK_THAT(error("broken_float.npy", {}), Contains("\"<f4\" (floating point) cannot be token ids"));
  CHECK_THAT(error("olmo_uint16.npy", {}), Contains("set data.token_dtype"));
}

TEST_CASE("tokens: the type of raw ids follows the vocabulary where nothing names it, as in training", "[read]") {
  const test::TempDir dir;
  dir.write("a.bin", std::string("\1\0\2\0\3\0\4\0", 8));
  CHECK(inspect_tokens(test::source_of(dir / "a.bin"), {}).dtype == "uint16");
  TokenInfoOptions large;
  large.vocab_size = 100000;
  CHECK(inspect_tokens(test::source_of(dir / "a.bin"), large).dtype == "uint32");
}

TEST_CASE("megatron: documents begin where the index says", "[read]") {
  const MegatronIndex index = parse(bytes_of({}));
  CHECK(index.tokens == 5);
  CHECK(index.document_starts == std::vector<std::int64_t>{0, 2, 5});
  Index one;
  one.documents = {0, 2};
  CHECK(parse(bytes_of(one)).document_starts == std::vector<std::int64_t>{0, 5});
}

TEST_CASE("megatron: an index that is cut or contradicts itself is refused", "[read]") {
  const std::string whole = bytes_of({});
  for (std::size_t size = 0; size < whole.size(); ++size) {
    CHECK_THROWS_AS(parse(whole.substr(0, size)), Error);
  }
  const auto refused = [](const Index& index, const char* says) { CHECK_THROWS_WITH(parse(bytes_of(index)), Contains(says)); };
  refused({2}, "version 2");
  refused({1, 7}, "type code 7");
  refused({1, 8, {2, -3}}, "sequence 1 has -3 ids");
  refused({1, 8, {2, 3}, {0, 6}}, "sequence 1 begins at byte 6, the ones before it end at 4");
  refused({1, 8, {2, 3}, {0, 4}, {0, 3}}, "document 1 begins at sequence 3");
  refused({1, 8, {2, 3}, {0, 4}, {0, 1}}, "the documents end at sequence 1 of 2");
  refused({1, 8, {2, 3}, {0, 4}, {}}, "names no document");
  std::string hostile = whole;
  const std::uint64_t count = ~std::uint64_t{0} / 2;
  std::memcpy(hostile.data() + 18, &count, 8);
  CHECK_THROWS_WITH(parse(hostile), Contains("cut off: sizes"));
  // Beside a .bin, too, however little is left of it; a file of something else is passed over.
  const test::TempDir dir;
  dir.write("a.bin", "12345678");
  for (const std::size_t left : {std::size_t{0}, std::size_t{8}}) {
    dir.write("a.idx", whole.substr(0, left));
    CHECK_THROWS_WITH(has_megatron_index(dir / "a.bin"), Contains("a.idx is cut off"));
  }
  dir.write("a.idx", std::string("TNTIDX\0\0\1", 9));
  CHECK_THROWS_WITH(has_megatron_index(dir / "a.bin"), Contains("older form (TNTIDX)"));
  dir.write("a.idx", "an index of a book");
  CHECK_FALSE(has_megatron_index(dir / "a.bin"));
}

TEST_CASE("megatron: a .bin of another size than its index says is refused", "[read]") {
  const test::TempDir dir;
  dir.write("a.idx", bytes_of({}));
  dir.write("a.bin", std::string(8, '\0'));
  CHECK_THROWS_WITH(find_megatron_index(dir / "a.bin"), Contains("has 8 bytes, its index a.idx says 10"));
  dir.write("b.idx", "something else");
  dir.write("b.bin", "1234");
  CHECK(!find_megatron_index(dir / "b.bin"));
}
