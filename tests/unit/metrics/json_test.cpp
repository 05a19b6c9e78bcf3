#include "config/tree/json.h"

#include <catch2/catch.hpp>

#include <cmath>
#include <limits>

#include "core/error.h"

using namespace kf;
using Catch::Matchers::Contains;
using config::JsonStyle;
using config::Node;
using config::Table;

namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();

std::string round_trip(const Node& node) {
  const std::string once = config::to_json(node, JsonStyle::exact);
  const std::string twice = config::to_json(config::parse_json(once, "x", JsonStyle::exact), JsonStyle::exact, 2);
  return config::to_json(config::parse_json(twice, "x", JsonStyle::exact), JsonStyle::exact);
}

}  // namespace

TEST_CASE("json: reals stay reals and read back bit for bit", "[json]") {
  CHECK(config::json_number(6) == "6.0");
  CHECK(config::json_number(0.00035) == "0.00035");
  CHECK(config::json_number(1e300) == "1e+300");
  CHECK(config::json_number(-0.0) == "-0.0");
  CHECK(config::json_number(std::nan("")) == "\"nan\"");
  CHECK(config::json_number(-kInf) == "\"-inf\"");
  for (const double value : {0.1, 1.0 / 3, 6.2381000518798828, 5e-324, 1.7976931348623157e308, -0.0, 9007199254740993.0}) {
    const Node back = config::parse_json(config::json_number(value), "x");
    REQUIRE(std::holds_alternative<double>(back.value));
    const double read = std::get<double>(back.value);
    CHECK((read == value && std::signbit(read) == std::signbit(value)));
  }
}

TEST_CASE("json: plain text of a tree", "[json]") {
  Table inner;
  inner["list"] = Node(config::Array{Node(std::int64_t{1}), Node(2.5), Node(true), Node(), Node(std::string("a\"b\n"))});
  Table table;
  table["z"] = Node(std::int64_t{1});
  table["a"] = Node(inner);
  table["e"] = Node(Table{});
  table["n"] = Node(kInf);
  CHECK(config::to_json(Node(table)) == R"({"z": 1, "a": {"list": [1, 2.5, true, null, "a\"b\n"]}, "e": {}, "n": "inf"})");
  CHECK(config::to_json(Node(inner), JsonStyle::plain, 2) ==
        "{\n  \"list\": [\n    1,\n    2.5,\n    true,\n    null,\n    \"a\\\"b\\n\"\n  ]\n}");
  CHECK_THROWS_WITH(config::to_json(Node(std::string("\xff"))), Contains("is not UTF-8"));
}

TEST_CASE("json: exact style keeps what JSON lacks", "[json]") {
  Table tricky;
  tricky["$real"] = Node(std::string("inf"));
  Table table;
  table["inf"] = Node(kInf);
  table["minus"] = Node(-kInf);
  table["nan"] = Node(std::nan(""));
  table["text"] = Node(std::string("inf"));
  table["bytes"] = Node(std::string("\x00\xff", 2));
  table["tricky"] = Node(tricky);
  table["$$x"] = Node(std::int64_t{1});
  const Node back = config::parse_json(config::to_json(Node(table), JsonStyle::exact), "x", JsonStyle::exact);
  CHECK(std::get<double>(back.table()->find("inf")->value) == kInf);
  CHECK(std::get<double>(back.table()->find("minus")->value) == -kInf);
  CHECK(std::isnan(std::get<double>(back.table()->find("nan")->value)));
  CHECK(std::get<std::string>(back.table()->find("text")->value) == "inf");
  CHECK(std::get<std::string>(back.table()->find("bytes")->value) == std::string("\x00\xff", 2));
  CHECK(std::get<std::string>(back.table()->find("tricky")->table()->find("$real")->value) == "inf");
  CHECK(back.table()->find("$$x") != nullptr);
  CHECK(round_trip(Node(table)) == config::to_json(Node(table), JsonStyle::exact));
}

TEST_CASE("json: what is no exact tree is refused by name", "[json]") {
  const auto refused = [](const std::string& text) { return config::parse_json(text, "state.json", JsonStyle::exact); };
  CHECK_THROWS_WITH(refused(R"({"a": 1, "a": 2})"), Contains("state.json: the key \"a\" is given twice"));
  CHECK_THROWS_WITH(refused("{"), Contains("state.json: not valid JSON"));
  CHECK_THROWS_WITH(refused("{} {}"), Contains("not valid JSON"));
  CHECK_THROWS_WITH(refused(""), Contains("not valid JSON"));
  CHECK_THROWS_WITH(refused("9223372036854775808"), Contains("does not fit in 64 bits"));
  CHECK_THROWS_WITH(refused("99999999999999999999999"), Contains("does not fit in 64 bits"));
  CHECK_THROWS_WITH(refused(R"({"$real": "1"})"), Contains("no value that this program writes"));
  CHECK_THROWS_WITH(refused(R"({"$bytes": "0g"})"), Contains("no value that this program writes"));
  CHECK_THROWS_WITH(refused(R"({"$other": 1})"), Contains("no value that this program writes"));
  CHECK_THROWS_WITH(refused(std::string(300, '[') + std::string(300, ']')), Contains("deeper than 200"));
  CHECK(std::get<std::int64_t>(refused("-9223372036854775808").value) == std::numeric_limits<std::int64_t>::min());
}
