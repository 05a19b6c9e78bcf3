#include "report/page/page.h"

#include <catch2/catch.hpp>

#include <nlohmann/json.hpp>

#include "report/page/json_writer.h"
#include "report/page/series_data.h"
#include "support/temp_dir.h"

using namespace kf::report;
using Catch::Contains;
using nlohmann::json;

namespace {

json series_of(const std::string& lines, std::size_t buckets) {
  const kf::test::TempDir dir;
  RowFile rows(dir.write("metrics.jsonl", lines));
  rows.read();
  JsonWriter out;
  out.begin_object();
  write_series(out, rows, buckets);
  return json::parse(out.end_object().text());
}

}  // namespace

TEST_CASE("page: it is whole, loads nothing, and holds text as text", "[report]") {
  const std::string html = page_html("a<b>", "{\"x\":\"{{SCRIPT}}\"}", "abc", false);
  CHECK_THAT(html, Contains("<title>a&lt;b&gt;</title>"));
  CHECK_THAT(html, Contains("{\"x\":\"{{SCRIPT}}\"}"));  // a name in the data is not filled in
  CHECK_THAT(html, Contains("script-src 'nonce-abc'") && Contains("connect-src 'none'") && Contains("<script nonce=\"abc\">"));
  CHECK_THAT(html, !Contains("http://") || Contains("http://www.w3.org/2000/svg"));
  CHECK_THAT(html, !Contains("https://") && !Contains("{{STYLE}}") && !Contains("@import"));
}

TEST_CASE("page: random digits are many and differ", "[report]") {
  CHECK(random_digits().size() == 32);
  CHECK(random_digits() != random_digits());
}

TEST_CASE("page: few rows are all there, with null for what is not finite", "[report]") {
  const json data = series_of(
      "{\"step\":1,\"loss\":3.5,\"tokens\":10,\"seconds\":1.5}\n{\"step\":2,\"loss\":null,\"not_finite\":{\"loss\":\"nan\"},\"tokens\":20,"
      "\"seconds\":3}\n"
      "{\"step\":2,\"eval\":{\"loss\":3.25,\"code\":{\"loss\":2}}}\n{\"step\":3,\"loss\":2.5,\"own\":7,\"tokens\":30,\"seconds\":4.5}\n",
      100);
  CHECK(data["series"]["loss"] == json({{"step", {1, 2, 3}}, {"value", {3.5, nullptr, 2.5}}}));
  CHECK(data["series"]["own"] == json({{"step", {3}}, {"value", {7.0}}}));
  CHECK(data["series"]["eval.loss"] == json({{"step", {2}}, {"value", {3.25}}}));
  CHECK(data["series"]["eval.code.loss"]["value"] == json({2.0}));
  CHECK(data["axes"] == json({{"step", {1, 2, 3}}, {"tokens", {10.0, 20.0, 30.0}}, {"seconds", {1.5, 3.0, 4.5}}}));
}

TEST_CASE("page: of many rows every peak and every hole stays, and means are of all rows", "[report]") {
  std::string lines;
  for (int step = 1; step <= 20000; ++step) {
    const std::string loss = step == 7777 ? "99" : (step == 15000 ? "-5" : (step == 3333 ? "null,\"not_finite\":{\"loss\":\"inf\"}" : "1"));
    lines += "{\"step\":" + std::to_string(step) + ",\"loss\":" + loss + "}\n";
  }
  const json loss = series_of(lines, 50)["series"]["loss"];
  const auto steps = loss["step"].get<std::vector<int>>();
  CHECK(steps.size() <= 152);
  CHECK(steps.front() == 1);
  CHECK(steps.back() == 20000);
  CHECK(std::is_sorted(steps.begin(), steps.end()));
  const auto value_at = [&](int step) { return loss["value"][std::find(steps.begin(), steps.end(), step) - steps.begin()]; };
  CHECK(value_at(7777) == 99);
  CHECK(value_at(15000) == -5);
  CHECK(value_at(3333).is_null());
  REQUIRE(loss["mean"].size() == 50);
  CHECK(loss["mean"][0] == 1);
  CHECK(loss["mean"][7777 / 400].get<double>() == Approx(1 + 98.0 / 400));
}
