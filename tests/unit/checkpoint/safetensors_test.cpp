#include "checkpoint/files/safetensors.h"

#include <ATen/Functions.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstring>
#include <random>

#include "checkpoint/files/durable_file.h"
#include "core/error.h"
#include "support/temp_dir.h"

#include <catch2/catch.hpp>  // after LibTorch, whose CHECK it replaces

using namespace kf;
using Catch::Matchers::Contains;

namespace {

/// A file with this header and so many bytes of data, whether or not they fit each other.
fs::path write_raw(const test::TempDir& dir, const std::string& header, std::size_t data_bytes, std::uint64_t claimed) {
  std::string file(8, '\0');
  std::memcpy(file.data(), &claimed, 8);
  return dir.write("x.safetensors", file + header + std::string(data_bytes, '\0'));
}
fs::path write_raw(const test::TempDir& dir, const std::string& header, std::size_t data_bytes) {
  return write_raw(dir, header, data_bytes, header.size());
}

/// The message of the refusal, "" when the file was taken.
std::string refusal(const fs::path& path) {
  try {
    const SafetensorsFile file(path);
    for (const std::string& name : file.names()) {
      file.tensor(name);
    }
    return {};
  } catch (const Error& e) {
    CHECK(e.code() == Code::checkpoint);
    CHECK_THAT(e.what(), Contains(path.string()));
    return e.what();
  }
}

bool same(const at::Tensor& a, const at::Tensor& b) {
  return a.scalar_type() == b.scalar_type() && a.sizes() == b.sizes() &&
         (a.numel() == 0 || std::memcmp(a.contiguous().const_data_ptr(), b.contiguous().const_data_ptr(), a.nbytes()) == 0);
}

}  // namespace

TEST_CASE("safetensors: every dtype and shape comes back bit for bit", "[checkpoint]") {
  const test::TempDir dir;
  std::vector<std::pair<std::string, at::Tensor>> tensors;
  const at::Tensor base = at::arange(12, at::kFloat).view({3, 4});
  for (const at::ScalarType type : {at::kBool, at::kByte, at::kChar, at::kShort, at::kUInt16, at::kInt, at::kUInt32, at::kLong, at::kUInt64,
                                    at::kHalf, at::kBFloat16, at::kFloat, at::kDouble, at::kFloat8_e4m3fn, at::kFloat8_e5m2}) {
    tensors.emplace_back(std::string("t.") + c10::toString(type), base.to(type));
  }
  tensors.emplace_back("scalar", at::scalar_tensor(2.5));
  tensors.emplace_back("empty", at::empty({0, 7}));
  tensors.emplace_back("transposed", base.t());
  tensors.emplace_back("sliced", base.slice(1, 1, 4, 2));
  tensors.emplace_back("odd \"name\" \\ \t é", at::full({1}, std::nan("")));
  write_safetensors(dir / "a.safetensors", tensors, {{"format", "pt"}, {"note", "line\nbreak"}});

  const SafetensorsFile file(dir / "a.safetensors");
  REQUIRE(file.names().size() == tensors.size());
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    CAPTURE(tensors[i].first);
    CHECK(file.names()[i] == tensors[i].first);
    CHECK(same(file.tensor(tensors[i].first), tensors[i].second));
  }
  CHECK(file.metadata().at("note") == "line\nbreak");
  CHECK(file.shape("transposed") == std::vector<std::int64_t>{4, 3});
}

TEST_CASE("safetensors: a range is what narrowing the whole would give, whichever dims it cuts", "[checkpoint]") {
  const test::TempDir dir;
  const at::Tensor box = at::arange(120, at::kFloat).view({4, 5, 6});
  const at::Tensor flags = at::arange(7).gt(2);
  write_safetensors(dir / "x.safetensors", {{"box", box}, {"flags", flags}, {"scalar", at::scalar_tensor(3)}});
  const SafetensorsFile file(dir / "x.safetensors");
  for (const Range& range :
       {Range{{0, 0, 0}, {4, 5, 6}}, Range{{1, 0, 0}, {2, 5, 6}}, Range{{0, 2, 0}, {4, 3, 6}}, Range{{0, 0, 5}, {4, 5, 1}},
        Range{{3, 1, 2}, {1, 4, 3}}, Range{{1, 1, 1}, {3, 1, 5}}, Range{{2, 0, 0}, {0, 5, 6}}, Range{{4, 5, 6}, {0, 0, 0}}}) {
    CAPTURE(range.begin, range.size);
    CHECK(same(file.slice("box", range), range.of(box)));
  }
  CHECK(same(file.slice("flags", {{2}, {3}}), flags.narrow(0, 2, 3)));
  CHECK(same(file.slice("scalar", {}), at::scalar_tensor(3)));
}

TEST_CASE("safetensors: the bytes are the format's own", "[checkpoint]") {
  const test::TempDir dir;
  write_safetensors(dir / "a.safetensors", {{"w", at::ones({2})}});
  const std::string bytes = read_file(dir / "a.safetensors");
  std::uint64_t length = 0;
  std::memcpy(&length, bytes.data(), 8);
  CHECK(length % 8 == 0);
  CHECK(std::string(trim(bytes.substr(8, length))) == R"({"w":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}})");
  CHECK(bytes.size() == 8 + length + 8);
  CHECK(digest_of(dir / "a.safetensors") == FileDigest{bytes.size(), extend_crc32(0, bytes.data(), bytes.size())});
}

TEST_CASE("safetensors: an unknown name suggests the nearest", "[checkpoint]") {
  const test::TempDir dir;
  write_safetensors(dir / "a.safetensors", {{"norm.weight", at::ones({2})}});
  const SafetensorsFile file(dir / "a.safetensors");
  CHECK_THROWS_WITH(file.tensor("norm.weigth"), Contains("no tensor 'norm.weigth'; did you mean 'norm.weight'?"));
}

TEST_CASE("safetensors: a lie about lengths is refused", "[checkpoint]") {
  const test::TempDir dir;
  const std::string good = R"({"w":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}})";
  REQUIRE(refusal(write_raw(dir, good, 8)).empty());
  CHECK_THAT(refusal(dir.write("e.safetensors", "")), Contains("too few"));
  CHECK_THAT(refusal(dir.write("e.safetensors", "1234567")), Contains("too few"));
  CHECK_THAT(refusal(dir / "absent.safetensors"), Contains("cannot open"));
  CHECK_THAT(refusal(write_raw(dir, good, 8, good.size() + 9)), Contains("cut short"));
  CHECK_THAT(refusal(write_raw(dir, good, 8, ~std::uint64_t{0})), Contains("claims a header of 18446744073709551615 bytes"));
  CHECK_THAT(refusal(write_raw(dir, good, 8, 100'000'001)), Contains("the format allows 100000000"));
  CHECK_THAT(refusal(write_raw(dir, good, 7)), Contains("tensor 'w' ends at byte 8 of 7"));
  CHECK_THAT(refusal(write_raw(dir, good, 9)), Contains("the last 1 bytes belong to no tensor"));
  CHECK_THAT(refusal(write_raw(dir, good, 0, 0)), Contains("does not begin with '{'"));
  CHECK_THAT(refusal(write_raw(dir, " " + good, 8)), Contains("does not begin with '{'"));
}

TEST_CASE("safetensors: every lie in the header is refused by name", "[checkpoint]") {
  const test::TempDir dir;
  const auto one = [](const std::string& dtype, const std::string& shape, const std::string& offsets) {
    return R"({"w":{"dtype":)" + dtype + R"(,"shape":)" + shape + R"(,"data_offsets":)" + offsets + "}}";
  };
  struct Case {
    std::string header;
    std::size_t bytes;
    std::string message;
  };
  const std::vector<Case> cases{
      {one("\"F33\"", "[2]", "[0,8]"), 8, "tensor 'w' has the unknown dtype 'F33'; known: BOOL, U8"},
      {one("\"F32\"", "[3]", "[0,8]"), 8, "tensor 'w' of [3] F32 needs 12 bytes, its data_offsets give 8"},
      {one("\"F32\"", "[]", "[0,8]"), 8, "needs 4 bytes"},
      {one("\"F32\"", "[2]", "[8,0]"), 8, "tensor 'w' ends at byte 0, before it begins at 8"},
      {one("\"F32\"", "[2]", "[0]"), 8, "exactly two"},
      {one("\"F32\"", "[2]", "[0,8,8]"), 8, "exactly two"},
      {one("\"F32\"", "[-2]", "[0,8]"), 8, "'shape' has -2 where a list of non-negative integers belongs"},
      {one("\"F32\"", "[2.0]", "[0,8]"), 8, "'shape' has 2.0"},
      {one("\"F32\"", "[18446744073709551616]", "[0,8]"), 8, "'shape' has 18446744073709551616"},
      {one("\"F32\"", "[18446744073709551615]", "[0,8]"), 8, "no file can hold"},
      {one("\"F32\"", "[4294967296,4294967296,4]", "[0,8]"), 8, "more than 2^63"},
      {one("\"F32\"", "[0,4611686018427387904,4]", "[0,0]"), 0, "more than 2^63"},
      {one("\"U8\"", "[4611686018427387904,4]", "[0,0]"), 0, "more than 2^63"},
      {one("\"F32\"", "[[2]]", "[0,8]"), 8, "'shape' has a list"},
      {one("\"F32\"", "2", "[0,8]"), 8, "'shape' has 2"},
      {one("null", "[2]", "[0,8]"), 8, "'dtype' has null where a string belongs"},
      {one("{}", "[2]", "[0,8]"), 8, "'dtype' has an object"},
      {R"({"w":{"dtype":"F32","shape":[2]}})", 8, "tensor 'w': key 'data_offsets' is missing"},
      {R"({"w":{"dtype":"F32","dtype":"F32","shape":[2],"data_offsets":[0,8]}})", 8, "key 'dtype' is given twice"},
      {R"({"w":{"dtype":"F32","shape":[2],"data_offsets":[0,8],"x":1}})", 8, "unknown key 'x'"},
      {R"({"w":[]})", 8, "tensor 'w' is a list, not an object"},
      {R"({"w":3})", 8, "tensor 'w' is 3, not an object"},
      {R"({"w":{"dtype":"F32","shape":[1],"data_offsets":[0,4]},"w":{"dtype":"F32","shape":[1],"data_offsets":[4,8]}})", 8,
       "two entries named 'w'"},
      {R"({"v":{"dtype":"F32","shape":[1],"data_offsets":[0,4]},"w":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}})", 4,
       "inside its neighbour"},
      {R"({"v":{"dtype":"F32","shape":[1],"data_offsets":[0,4]},"w":{"dtype":"F32","shape":[1],"data_offsets":[2,6]}})", 8,
       "tensor 'w' begins at byte 2, inside its neighbour, which ends at 4"},
      {R"({"v":{"dtype":"F32","shape":[1],"data_offsets":[0,4]},"w":{"dtype":"F32","shape":[1],"data_offsets":[8,12]}})", 12,
       "bytes 4 to 8 before tensor 'w' belong to no tensor"},
      {R"({"__metadata__":{"a":1}})", 0, "entry '__metadata__': 'a' has 1 where a string belongs"},
      {R"({"__metadata__":{"a":"1","a":"2"}})", 0, "key 'a' is given twice"},
      {R"({"__metadata__":"x"})", 0, "entry '__metadata__' is a string, not an object"},
      {R"({"w":{"dtype":"F32")", 0, "not valid JSON"},
      {R"({} {})", 0, "not valid JSON"},
      {"{\"\xff\":{}}", 0, "not valid JSON"},
  };
  for (const Case& one_case : cases) {
    CAPTURE(one_case.header);
    CHECK_THAT(refusal(write_raw(dir, one_case.header, one_case.bytes)), Contains(one_case.message));
  }
  std::string dims = "1";
  for (int i = 0; i < 80; ++i) {
    dims += ",1";
  }
  CHECK_THAT(refusal(write_raw(dir, one("\"U8\"", "[" + dims + "]", "[0,1]"), 1)), Contains("more than 64 dims"));
  CHECK_THAT(refusal(write_raw(dir, std::string(1'000'000, '['), 0)), Contains("does not begin"));
  CHECK_THAT(refusal(write_raw(dir, "{\"w\":" + std::string(1'000'000, '['), 0)), Contains("not an object"));
}

TEST_CASE("safetensors: a BOOL that is neither 0 nor 1 is refused", "[checkpoint]") {
  const test::TempDir dir;
  const fs::path path = write_raw(dir, R"({"w":{"dtype":"BOOL","shape":[2],"data_offsets":[0,2]}})", 2);
  REQUIRE(refusal(path).empty());
  std::string bytes = read_file(path);
  bytes.back() = 2;
  CHECK_THAT(refusal(dir.write("x.safetensors", bytes)), Contains("bytes other than 0 and 1"));
}

TEST_CASE("safetensors: a damaged file is read or refused, never more", "[checkpoint]") {
  const test::TempDir dir;
  write_safetensors(dir / "a.safetensors", {{"one", at::ones({3, 2})}, {"two", at::ones({4}, at::kBool)}}, {{"k", "v"}});
  const std::string good = read_file(dir / "a.safetensors");
  std::mt19937 random(7);
  for (int round = 0; round < 3000; ++round) {
    std::string bytes = good;
    const auto changes = 1 + random() % 3;
    for (std::size_t i = 0; i < changes; ++i) {
      bytes[random() % bytes.size()] = static_cast<char>(random());
    }
    if (round % 4 == 0) {
      bytes.resize(random() % bytes.size());
    }
    refusal(dir.write("b.safetensors", bytes));
  }
}

TEST_CASE("safetensors: what cannot be written is refused before a file appears", "[checkpoint]") {
  const test::TempDir dir;
  const at::Tensor one = at::ones({1});
  CHECK_THROWS_WITH(write_safetensors(dir / "a", {{"w", one}, {"w", one}}), Contains("two tensors are named 'w'"));
  CHECK_THROWS_WITH(write_safetensors(dir / "a", {{"w", at::Tensor()}}), Contains("'w' has no storage"));
  CHECK_THROWS_WITH(write_safetensors(dir / "a", {{"w", one.to(at::kComplexDouble)}}), Contains("cannot hold (ComplexDouble)"));
  CHECK_THROWS_WITH(write_safetensors(dir / "a", {{"__metadata__", one}}), Contains("cannot be the name"));
  CHECK_THROWS_WITH(write_safetensors(dir / "a", {{"\xff", one}}), Contains("cannot be the name"));
  CHECK_THROWS_WITH(write_safetensors(dir / "no" / "a", {{"w", one}}), Contains("No such file"));
  CHECK(fs::is_empty(dir.path()));
}

TEST_CASE("safetensors: a full disk is an error that leaves the older file and no other", "[checkpoint]") {
  const test::TempDir dir;
  write_safetensors(dir / "a.safetensors", {{"w", at::ones({10})}});
  const pid_t child = ::fork();
  if (child == 0) {
    std::signal(SIGXFSZ, SIG_IGN);
    const rlimit limit{64 * 1024, 64 * 1024};
    ::setrlimit(RLIMIT_FSIZE, &limit);
    int status = 1;
    try {
      write_safetensors(dir / "a.safetensors", {{"w", at::ones({100'000})}});
    } catch (const Error& e) {
      status = e.code() == Code::checkpoint && std::strstr(e.what(), "File too large") != nullptr ? 0 : 2;
    }
    ::_exit(status);
  }
  int status = -1;
  REQUIRE(::waitpid(child, &status, 0) == child);
  CHECK(status == 0);
  CHECK(SafetensorsFile(dir / "a.safetensors").shape("w") == std::vector<std::int64_t>{10});
  CHECK(std::distance(fs::directory_iterator(dir.path()), {}) == 1);
}

TEST_CASE("safetensors: the checksum told when writing is that of the file, with empty tensors in any place", "[safetensors]") {
  const test::TempDir dir;
  const at::Tensor some = at::arange(7, at::kFloat);
  const at::Tensor none = at::empty({0}, at::kFloat);
  const FileDigest told = write_safetensors(dir / "x.safetensors", {{"a", none}, {"b", some}, {"c", none}, {"d", some}, {"e", none}});
  CHECK(told == digest_of(dir / "x.safetensors"));
}
