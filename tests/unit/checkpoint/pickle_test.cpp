// The restricted reader of pickles, on bytes written by hand: what it takes, and what it refuses, by name and place.

#include <catch2/catch.hpp>

#include "checkpoint/pickle/unpickle.h"
#include "core/error.h"

using namespace kf;
using namespace kf::pickle;
using Catch::Matchers::Contains;
using namespace std::string_literals;

namespace {

const Place kPlace{"x.pt", 1000};

std::span<const std::byte> bytes(const std::string& text) { return {reinterpret_cast<const std::byte*>(text.data()), text.size()}; }

/// A pickle of protocol 4 with these instructions.
std::string pickled(const std::string& instructions) { return "\x80\x04"s + instructions + "."; }

std::string refusal(const std::string& pickle, const Limits& limits = {}) {
  try {
    unpickle(bytes(pickle), kPlace, limits);
    return "";
  } catch (const Error& error) {
    CHECK(error.code() == Code::checkpoint);
    CHECK_THAT(error.what(), Contains("x.pt"));
    return error.what();
  }
}

std::string times(std::size_t count, const std::string& text) {
  std::string out;
  for (std::size_t i = 0; i < count; ++i) {
    out += text;
  }
  return out;
}

}  // namespace

TEST_CASE("pickle: values of every kind are read", "[checkpoint]") {
  // ['é', b'\0', True, None, -2, 2**40, 0.5, (1, 2, 3), {'k': 'v'}, 2**80]
  const std::string pickle = pickled(
      "]("
      "\x8c\x02\xc3\xa9"
      "C\x01\0"
      "\x88N"
      "J\xfe\xff\xff\xff"
      "\x8a\x06\0\0\0\0\0\x01"
      "G\x3f\xe0\0\0\0\0\0\0"
      "K\x01K\x02K\x03\x87"
      "}\x8c\x01k\x8c\x01vs"
      "\x8a\x0b\0\0\0\0\0\0\0\0\0\0\x01"
      "e"s);
  const Unpickled read = unpickle(bytes(pickle), kPlace);
  CHECK(read.length == pickle.size());
  const Value list = read.value();
  REQUIRE(list.size() == 10);
  CHECK(list.item(0).text() == "é");
  CHECK((list.item(1).is(Kind::bytes) && list.item(1).text() == "\0"s));
  CHECK(list.item(2).boolean());
  CHECK(list.item(3).is(Kind::none));
  CHECK(list.item(4).integer() == -2);
  CHECK(list.item(5).integer() == std::int64_t{1} << 40);
  CHECK(list.item(6).real() == 0.5);
  CHECK(list.item(7).item(2).integer() == 3);
  CHECK(list.item(8).find("k")->text() == "v");
  CHECK(!list.item(8).find("other"));
  CHECK(list.item(9).is(Kind::large_integer));
}

TEST_CASE("pickle: what Python would call stays a name with arguments", "[checkpoint]") {
  const Unpickled read = unpickle(bytes(pickled("ctorch\nSize\nK\x03\x85\x85R"s)), kPlace);
  CHECK(read.value().is(Kind::object, "torch.Size"));
  CHECK(read.value().item(0).item(0).integer() == 3);
  const Unpickled dict = unpickle(bytes(pickled("ccollections\nOrderedDict\n)R\x8c\x01kK\x05s}b"s)), kPlace);
  CHECK(dict.value().find("k")->integer() == 5);
}

TEST_CASE("pickle: globals beside the list are refused by name", "[checkpoint]") {
  const std::string message = refusal(pickled("cposix\nsystem\n\x8c\x02ls\x85R"s));
  CHECK_THAT(message, Contains("\"posix.system\"") && Contains("(byte 1002)") && Contains("safetensors"));
  CHECK_THAT(refusal(pickled("\x8c\x08"s + "builtins\x8c\x04" + "eval\x93"s)), Contains("\"builtins.eval\"") && Contains("byte 1018"));
  CHECK_THAT(refusal(pickled("ctorch._utils\n_rebuild_tensor_v2.__globals__\n"s)), Contains("_rebuild_tensor_v2.__globals__"));
  CHECK_THAT(refusal(pickled("ctorch.serialization\nload\n"s)), Contains("torch.serialization.load"));
  CHECK_THAT(refusal(pickled("K\x01K\x02\x93"s)), Contains("by something else than texts"));
}

TEST_CASE("pickle: instructions beside the list are refused by name", "[checkpoint]") {
  const std::pair<std::string, std::string> cases[] = {{"(ios\nsystem\n"s, "INST"},
                                                       {"(cos\nsystem\no"s, "os.system"},
                                                       {"I1\n"s, "INT"},
                                                       {"\x82\x01"s, "EXT1"},
                                                       {"\x97"s, "NEXT_BUFFER"},
                                                       {"P1\n"s, "PERSID"},
                                                       {"\xff"s, "0xff"},
                                                       {"p0\n"s, "PUT"},
                                                       {"(K\x01o"s, "OBJ"},
                                                       {")}\x92"s, "NEWOBJ_EX"}};
  for (const auto& [instructions, name] : cases) {
    CAPTURE(name);
    CHECK_THAT(refusal(pickled(instructions)), Contains(name));
  }
  CHECK_THAT(refusal("(lp0\n."), Contains("PROTO"));  // protocol 0 has none
  CHECK_THAT(refusal("\x80\x06N."s), Contains("protocol 6"));
}

TEST_CASE("pickle: instructions that find nothing to work on are refused", "[checkpoint]") {
  for (const std::string& instructions : {"a"s,
                                          "e"s,
                                          "u"s,
                                          "t"s,
                                          "0"s,
                                          "1"s,
                                          "R"s,
                                          "b"s,
                                          "Q"s,
                                          "2"s,
                                          "\x94"s,
                                          "q\0"s,
                                          "\x85"s,
                                          "\x93"s,
                                          "]K\x01s"s,
                                          "]K\x01\x85R"s,
                                          "](K\x01u"s,
                                          "}(K\x01u"s,
                                          "}K\x01"s + "a"s,
                                          "(K\x01\x86"s,
                                          "h\x05"s,
                                          "K\x01K\x02"s,
                                          "(N"s,
                                          "K\x01}b"s,
                                          "ctorch\nSize\nK\x01R"s,
                                          "ccollections\nOrderedDict\nK\x01\x85R"s,
                                          ""s}) {
    CAPTURE(instructions);
    CHECK(!refusal(pickled(instructions)).empty());
  }
}

TEST_CASE("pickle: lengths beyond the file cost nothing", "[checkpoint]") {
  for (const std::string& instructions :
       {"X\xff\xff\xff\xff"s, "\x8d\xff\xff\xff\xff\xff\xff\xff\x7f"s, "\x8e\0\0\0\0\0\0\0\xff"s, "B\xff\xff\xff\x7f"s,
        "\x8b\xff\xff\xff\x7f"s, "\x95\xff\xff\xff\xff\xff\xff\xff\xff"s, "T\xff\xff\xff\xff"s, "ctorch"s}) {
    CAPTURE(instructions);
    CHECK(!refusal(pickled(instructions)).empty());
  }
  CHECK(!refusal("\x80"s).empty());
  CHECK(!refusal("").empty());
  CHECK_THAT(refusal("\x80\x04]"s), Contains("cut short"));
}

TEST_CASE("pickle: bombs and circles are refused", "[checkpoint]") {
  SECTION("a list that contains itself") { CHECK_THAT(refusal(pickled("]\x94h\0a"s)), Contains("a list that contains itself")); }
  SECTION("a circle over two") { CHECK_THAT(refusal(pickled("]\x94]\x94h\0a"s + "a"s)), Contains("contains itself")); }
  SECTION("a dict in its own state") { CHECK_THAT(refusal(pickled("ctorch\nSize\n)R\x94h\0b"s)), Contains("contains itself")); }
  SECTION("doubled forty times") {  // 2^40 values in 200 bytes
    CHECK_THAT(refusal(pickled("]\x94"s + times(40, "0h\0h\0\x86q\0"s))), Contains("again and again"));
  }
  SECTION("deep") {
    CHECK_THAT(refusal(pickled("N"s + times(100'000, "\x85"s))), Contains("100000 deep"));
    CHECK_THAT(refusal(pickled(times(100'000, "("s) + "N" + times(100'000, "t"s))), Contains("deep"));
  }
  SECTION("a memo without end") {
    Limits limits;
    limits.memo = 100;
    std::string instructions = "N";
    for (char i = 0; i < 101; ++i) {
      instructions += "r"s + i + "\0\0\0"s;
    }
    CHECK_THAT(refusal(pickled(instructions), limits), Contains("more than 100 values"));
  }
  SECTION("values without end") {
    Limits limits;
    limits.memory = 10'000;
    CHECK_THAT(refusal(pickled("(" + times(1000, "N"s) + "t"), limits), Contains("10000 bytes"));
    CHECK_THAT(refusal(pickled("](" + times(10, "N"s) + "e\x94" + times(1000, "ccollections\nOrderedDict\n0"s)), limits),
               Contains("10000 bytes"));
    CHECK_THAT(refusal(pickled(times(10'000, "("s)), limits), Contains("10000 bytes"));
  }
  SECTION("a list that is copied again and again") {
    Limits limits;
    limits.memory = 1 << 20;
    const std::string pair = "N]\x86", dict = "ccollections\nOrderedDict\nh\0\x85R0"s;
    CHECK_THAT(refusal(pickled("]\x94("s + times(1000, pair) + "e" + times(1000, dict)), limits), Contains("1048576 bytes"));
  }
}

TEST_CASE("pickle: every cut and every changed byte is an error or another value, never more", "[checkpoint]") {
  const std::string pickle =
      pickled("](\x8c\x02\xc3\xa9}\x8c\x01k\x8c\x01vsctorch\nSize\nK\x03\x85\x85R\x94h\0ccollections\nOrderedDict\n)R}be"s);
  REQUIRE(refusal(pickle).empty());
  for (std::size_t i = 0; i < pickle.size(); ++i) {
    CHECK(!refusal(pickle.substr(0, i)).empty());
    for (int byte = 0; byte < 256; ++byte) {
      std::string changed = pickle;
      changed[i] = static_cast<char>(byte);
      refusal(changed);
    }
  }
}
