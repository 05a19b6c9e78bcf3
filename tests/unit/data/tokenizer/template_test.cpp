// Templates of chats, against what transformers makes of them (templates/oracle.py).

#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>

#include "core/error.h"
#include "core/fs.h"
#include "data/template/template.h"
#include "data/template/values.h"

namespace kf::jinja {
namespace {

using Catch::Matchers::Contains;
using nlohmann::ordered_json;

std::string render(const std::string& source, const std::string& variables = "{}") {
  return Template(source).render(*parse_value(variables, "variables").dict()).text.bytes;
}

std::string error_of(const std::string& source, const std::string& variables = "{}") {
  try {
    render(source, variables);
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

TEST_CASE("template: published shapes of templates, and every operator, filter and test, give what Jinja gives") {
  const auto all = ordered_json::parse(read_file(fs::path(KF_SOURCE_DIR) / "tests/unit/data/tokenizer/templates/cases.json"));
  std::size_t rendered = 0;
  for (const auto& each : all["cases"]) {
    const std::string name = each["name"];
    CAPTURE(name);
    const Template made(all["templates"][name.substr(0, name.find(' '))].get<std::string>());
    const Value variables = parse_value(each["variables"].dump(), name);
    const Rendered out = made.render(*variables.dict());
    CHECK(out.text.bytes == each["text"].get<std::string>());
    CHECK(out.text.from.size() == out.text.bytes.size());
    std::vector<ByteRange> spans;
    for (const auto& span : each["spans"]) {
      spans.push_back({span[0], span[1]});
    }
    CHECK((out.generation == spans));
    ++rendered;
  }
  CHECK(rendered > 40);
}

TEST_CASE("template: text knows what wrote it, through every change of it") {
  Dict variables;
  variables.put("said", Value::text("  Say <END> \n twice ", 7));
  const auto origins = [&](const std::string& source) {
    const Text text = Template(source).render(variables).text;
    std::string out;
    for (std::size_t i = 0; i < text.size(); ++i) {
      out += text.from[i] == 7 ? text.bytes[i] : '.';
    }
    return out;
  };
  CHECK(origins("<a>{{ said | trim }}<b>") == "...Say <END> \n twice...");
  CHECK(origins("{{ '[' + said.strip().replace('Say', 'X') + ']' }}") == ".. <END> \n twice.");
  CHECK(origins("{{ said.split('<')[1][:3] ~ '!' }}") == "END.");
  CHECK(origins("{{ [said, 'x'] | join('-') | upper }}") == "  SAY <END> \n TWICE ..");
  CHECK(origins("{{ {'k': said.strip()} | tojson }}") == "{\".\": \"Say <END> \\n twice\"}");
  CHECK(origins("{% set x %}({{ said[2:5] }}){% endset %}{{ x }}{% macro m(a) %}{{ a | indent(1) }}{% endmacro %}{{ m(said) }}") ==
        ".Say.  Say <END> \n. twice ");
  CHECK(origins("{% filter trim %} {{ said }} {% endfilter %}") == "Say <END> \n twice");
}

TEST_CASE("template: what is not known is refused by name with its line") {
  const auto [source, says] = GENERATE(table<std::string, std::string>({
      {"a\n{% include 'x' %}", "line 2: {% include %} is not known here"},
      {"{{ x | shout }}", "line 1: there is no filter \"shout\"; have: abs,"},
      {"\n\n{% if x is pretty %}{% endif %}", "line 3: there is no test \"pretty\""},
      {"{% if x %}", "the template ends before {% endif %}"},
      {"{{ x", "{{ is not closed"},
      {"{# x", "a comment, {#, is not closed"},
      {"{{ 'x }}", "a string is not closed"},
      {"{{ f(*x) }}", "* and ** in a call are not known here"},
      {"{% break %}", "outside of a loop"},
      {"{{ x. }}", "a name expected, found }}"},
      {"{{ (1 }}", "} closes nothing"},
      {"{{ 1 ! 2 }}", "is not understood"},
      {"{% for a in b recursive %}{% endfor %}", "recursive loops are not known here"},
      {"{{ " + std::string(300, '(') + "1" + std::string(300, ')') + "}}", "nested more than"},
  }));
  CAPTURE(source);
  CHECK_THAT(error_of(source), Contains(says));
}

TEST_CASE("template: what goes wrong while it is filled in is said with its line") {
  const auto [source, says] = GENERATE(table<std::string, std::string>({
      {"\n{{ raise_exception('no tools') }}", "line 2: the template refuses: no tools"},
      {"{{ x.y.z }}", "line 1: \"x\" is undefined"},
      {"{{ m.y.z }}", "line 1: \"y\" is undefined"},
      {"{{ 'a' + 1 }}", "line 1: a string + a number"},
      {"{{ strftime_now('%Y') }}", "strftime_now (undefined) cannot be called; a date would make other ids every day"},
      {"{{ 1 / 0 }}", "a division by zero"},
      {"{% for a, b in [[1]] %}{% endfor %}", "2 names for 1 values"},
      {"{% set m.x = 1 %}", "is no namespace()"},
      {"{% macro f() %}{{ f() }}{% endmacro %}{{ f() }}", "more than 50 deep"},
      {"{{ 'x' * 99999999999 }}", "more than"},
      {"{{ range(10 ** 9) }}", "range() of more than"},
      {"{{ 9223372036854775807 + 1 }}", "does not fit"},
      {"{{ 10 ** 19 }}", "10 ** 19 does not fit"},
      {"{{ (-9223372036854775807 - 1) // -1 }}", "does not fit"},
      {"{{ -(-9223372036854775807 - 1) }}", "does not fit"},
  }));
  CAPTURE(source);
  CHECK_THAT(error_of(source, R"({"m": {"k": 1}})"), Contains(says));
}

TEST_CASE("template: whole numbers divide as Python's, exactly up to the last one") {
  CHECK(render("{{ -7 // 2 }} {{ -7 % 2 }} {{ 7 // -2 }} {{ 7 % -2 }} {{ 6 // -2 }} {{ 6 % -2 }}", "{}") == "-4 1 -4 -1 -3 0");
  CHECK(render("{{ 9007199254740993 // 1 }} {{ 9223372036854775807 % 10 }} {{ 3 ** 39 }} {{ (-2) ** 63 }}", "{}") ==
        "9007199254740993 7 4052555153018976267 -9223372036854775808");
  CHECK(render("{{ (-9223372036854775807 - 1) % -1 }} {{ 2 ** -1 }} {{ 7.5 // 2 }}", "{}") == "0 0.5 3.0");
}

TEST_CASE("template: numbers keep their kind, and dates are given by whoever calls") {
  CHECK(render("{{ n }} {{ r }} {{ b }} {{ big }}", R"({"n": 12345678901234567, "r": 2.0, "b": false, "big": 1e300})") ==
        "12345678901234567 2.0 False 1e+300");
  CHECK(render("{% if strftime_now is defined %}{{ strftime_now('%Y') }}{% else %}{{ date }}{% endif %}", R"({"date": "26 Jul 2024"})") ==
        "26 Jul 2024");
}

}  // namespace
}  // namespace kf::jinja
