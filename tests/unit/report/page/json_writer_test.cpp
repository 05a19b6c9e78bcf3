#include "report/page/json_writer.h"

#include <catch2/catch.hpp>

#include <limits>

using kf::report::JsonWriter;

TEST_CASE("json: what is written is separated and nested as JSON has it", "[report]") {
  JsonWriter json;
  json.begin_object()
      .member("a", std::int64_t{1})
      .key("b")
      .begin_array()
      .value(2.5)
      .value(true)
      .null()
      .begin_array()
      .end_array()
      .end_array();
  json.member("c", std::optional<double>()).member("d", std::optional<std::string>("x")).list("e", std::vector<double>{1, 2});
  json.key("f").begin_object().end_object().end_object();
  CHECK(json.text() == R"({"a":1,"b":[2.5,true,null,[]],"c":null,"d":"x","e":[1,2],"f":{}})");
}

TEST_CASE("json: text cannot leave the script that it stands in", "[report]") {
  JsonWriter json;
  json.value("</script><!-- & \"\\\n\x01");
  CHECK(json.text() == R"("\u003c/script\u003e\u003c!-- \u0026 \u0022\u005c\u000a\u0001")");
}

TEST_CASE("json: bytes that are no UTF-8 are replaced one by one", "[report]") {
  JsonWriter json;
  json.value(
      "\xc3\xa9\xff\xe2\x82"
      "x\xf0\x9f\x99\x82");
  CHECK(json.text() == "\"\xc3\xa9\\ufffd\\ufffd\\ufffdx\xf0\x9f\x99\x82\"");
}

TEST_CASE("json: numbers have nine digits, and what is not finite is null", "[report]") {
  JsonWriter json;
  json.begin_array().value(0.1).value(1e300).value(2.0).value(1.0 / 3).value(std::numeric_limits<double>::infinity());
  json.value(std::numeric_limits<double>::quiet_NaN()).end_array();
  CHECK(json.text() == "[0.1,1e+300,2,0.333333333,null,null]");
}
