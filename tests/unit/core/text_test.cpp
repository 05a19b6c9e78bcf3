#include "core/text.h"

#include <catch2/catch.hpp>

#include <array>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <limits>

#include "core/decimal.h"

using namespace kf;

TEST_CASE("text: format puts values in place of braces, in order", "[text]") {
  CHECK(format("{} of {}", 3, "four") == "3 of four");
  CHECK(format("no braces") == "no braces");
  CHECK(format("{}{}", std::string("a"), 'b') == "ab");
  CHECK(format("{}", true) == "true");
  CHECK(format("{}", std::filesystem::path("/a b/c")) == "/a b/c");
}

TEST_CASE("text: format never reads a value's own braces, and keeps what has no value", "[text]") {
  CHECK(format("{} {}", "{}", "x") == "{} x");
  CHECK(format("{} {}", 1) == "1 {}");
  CHECK(format("{x} {", 1) == "{x} {");
}

TEST_CASE("text: a double is written as the shortest text that reads back to it", "[text]") {
  CHECK(to_text(0.1) == "0.1");
  CHECK(to_text(3e-4) == "0.0003");
  CHECK(to_text(1e300) == "1e+300");
  CHECK(to_text(-0.0) == "-0");
  CHECK(to_text(std::numeric_limits<double>::infinity()) == "inf");
  CHECK(to_text(-std::numeric_limits<double>::infinity()) == "-inf");
  CHECK(to_text(std::nan("")) == "nan");
  for (const double value : {1.0 / 3.0, 6.02214076e23, 5e-324, std::numeric_limits<double>::max(), 0.1 + 0.2}) {
    CHECK(std::strtod(to_text(value).c_str(), nullptr) == value);
  }
}

TEST_CASE("text: integers keep every digit", "[text]") {
  CHECK(to_text(std::numeric_limits<std::int64_t>::min()) == "-9223372036854775808");
  CHECK(to_text(std::numeric_limits<std::uint64_t>::max()) == "18446744073709551615");
}

TEST_CASE("text: numbers for people", "[text]") {
  CHECK(fixed(2.5, 3) == "2.500");
  CHECK(fixed(-0.0049, 2) == "-0.00");
  CHECK(grouped(0) == "0");
  CHECK(grouped(999) == "999");
  CHECK(grouped(1000) == "1,000");
  CHECK(grouped(12345678) == "12,345,678");
  CHECK(grouped(-999) == "-999");
  CHECK(grouped(-123456) == "-123,456");
  CHECK(human_bytes(0) == "0 B");
  CHECK(human_bytes(999) == "999 B");
  CHECK(human_bytes(11.2e6) == "11.2 MB");
  CHECK(human_bytes(3e18) == "3000.0 PB");
}

TEST_CASE("text: decimals are those of printf in the C locale", "[text]") {
  for (const double value : {0.0, -0.0, 1.0, 0.1, -2.5, 123456.789, 9.9999995, 1e-7, 6.02e23, 1e308, 5e-324}) {
    CAPTURE(value);
    std::array<char, 512> text{};
    for (const int digits : {0, 1, 4, 12}) {
      std::snprintf(text.data(), text.size(), "%.*f", digits, value);
      CHECK(fixed(value, digits) == text.data());
      std::snprintf(text.data(), text.size(), "%.*e", digits, value);
      CHECK(scientific(value, digits) == text.data());
      std::snprintf(text.data(), text.size(), "%.*g", digits, value);
      CHECK(general(value, digits) == text.data());
    }
  }
  CHECK(fixed(std::numeric_limits<double>::infinity(), 2) == "inf");
}

TEST_CASE("text: seconds grow into minutes, hours and days", "[text]") {
  CHECK(human_seconds(-1) == "0s");
  CHECK(human_seconds(8.4) == "8s");
  CHECK(human_seconds(59.6) == "1m00");
  CHECK(human_seconds(302) == "5m02");
  CHECK(human_seconds(3 * 3600 + 7 * 60) == "3h07");
  CHECK(human_seconds(2 * 86400 + 4 * 3600) == "2d04h");
}

TEST_CASE("text: splitting keeps empty parts, and joining puts them back", "[text]") {
  CHECK(split("a,b,,c", ',') == std::vector<std::string>{"a", "b", "", "c"});
  CHECK(split("", ',') == std::vector<std::string>{""});
  CHECK(split(",", ',') == std::vector<std::string>{"", ""});
  CHECK(join({"a", "b", "", "c"}, ",") == "a,b,,c");
  CHECK(join({}, ",").empty());
  CHECK(join({"", "x"}, ", ") == ", x");
}

TEST_CASE("text: joining equal parts puts a separator between each", "[text]") { CHECK(join({"a", "a", "a"}, "-") == "a-a-a"); }

TEST_CASE("text: trimming takes white space off both ends only", "[text]") {
  CHECK(trim("  a b\t\r\n") == "a b");
  CHECK(trim(" \n ").empty());
  CHECK(trim("").empty());
}

TEST_CASE("text: quoting escapes what TOML, JSON and Lua cannot hold", "[text]") {
  CHECK(quoted("plain") == "\"plain\"");
  CHECK(quoted("a\"b\\c\n\t") == "\"a\\\"b\\\\c\\n\\t\"");
  CHECK(quoted(std::string_view("\0\x1f\x7f", 3)) == "\"\\u0000\\u001f\\u007f\"");
  CHECK(quoted("\xc3\xa9") == "\"\xc3\xa9\"");
}

TEST_CASE("text: the edit distance counts a swap of neighbours once", "[text]") {
  CHECK(edit_distance("", "") == 0);
  CHECK(edit_distance("abc", "") == 3);
  CHECK(edit_distance("kitten", "sitting") == 3);
  CHECK(edit_distance("steps", "setps") == 1);
  CHECK(edit_distance("ca", "abc") == 3);  // optimal string alignment: no edit inside a swap
}

TEST_CASE("text: the nearest spelling is a likely typo or nothing", "[text]") {
  const std::vector<std::string> words{"max_steps", "warmup_steps", "lr", "weight_decay", "name", "dim"};
  CHECK(nearest("wieght_decay", words) == "weight_decay");
  CHECK(nearest("Weight_Decay", words) == "weight_decay");
  CHECK(nearest("steps", words) == "max_steps");
  CHECK(nearest("lrr", words) == "lr");
  CHECK(nearest("zzzzzz", words).empty());
  CHECK(nearest("", words).empty());
  CHECK(nearest("anything", {}).empty());
}

TEST_CASE("text: UTF-8 is checked to the letter", "[text]") {
  CHECK(is_utf8(""));
  CHECK(is_utf8("plain"));
  CHECK(is_utf8("\xc3\xa9 \xe2\x82\xac \xf0\x9f\x99\x82"));
  CHECK(is_utf8("\xf4\x8f\xbf\xbf"));        // U+10FFFF
  CHECK_FALSE(is_utf8("\xf4\x90\x80\x80"));  // above it
  CHECK_FALSE(is_utf8("\xc0\xaf"));          // overlong
  CHECK_FALSE(is_utf8("\xe0\x80\xaf"));      // overlong
  CHECK_FALSE(is_utf8("\xed\xa0\x80"));      // a surrogate
  CHECK_FALSE(is_utf8("\x80"));              // a continuation without a start
  CHECK_FALSE(is_utf8("\xe2\x82"));          // cut off
  CHECK_FALSE(is_utf8("\xe2\x28\xa1"));      // a broken continuation
  CHECK_FALSE(is_utf8("\xff"));
}

TEST_CASE("text: name patterns cross dots", "[text]") {
  CHECK(glob_match("*", ""));
  CHECK(glob_match("layers.*.weight", "layers.0.attention.wq.weight"));
  CHECK(glob_match("layers.?.norm", "layers.7.norm"));
  CHECK_FALSE(glob_match("layers.?.norm", "layers.17.norm"));
  CHECK_FALSE(glob_match("wq", "wq.weight"));
  CHECK(glob_match("*a*b*", "xxaxxbxx"));
  CHECK_FALSE(glob_match("*a*b", "ab c"));
  CHECK(glob_match("", ""));
  CHECK_FALSE(glob_match("", "x"));
}

TEST_CASE("text: a pattern with many stars is still decided at once", "[text]") {
  std::string pattern;
  for (int i = 0; i < 40; ++i) {
    pattern += "*a";
  }
  CHECK_FALSE(glob_match(pattern + "b", std::string(5000, 'a')));
}
