#include "report/read/row_file.h"

#include <unistd.h>

#include <catch2/catch.hpp>

#include <cmath>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <random>
#include <string>
#include <vector>

#include "core/error.h"
#include "support/temp_dir.h"

namespace fs = std::filesystem;
using Catch::Matchers::Contains;
using kf::report::is_gap;
using kf::report::News;
using kf::report::RowFile;
using kf::test::TempDir;

namespace {

void append(const fs::path& file, const std::string& text) { std::ofstream(file, std::ios::app) << text; }

const std::vector<double>& values(const RowFile& rows, const char* name) {
  const RowFile::Series series = rows.find(name);
  REQUIRE(series.values != nullptr);
  return *series.values;
}

}  // namespace

TEST_CASE("report: rows become columns with gaps", "[report]") {
  const TempDir dir;
  const fs::path file = dir.write("metrics.jsonl",
                                  "{\"step\": 1, \"loss\": 5.5, \"lr\": 0.0, \"tokens\": 9007199254740991}\n"
                                  "{\"step\": 2, \"loss\": null, \"lr\": 1e-3, \"tokens\": 2, \"own/x\": -0.25}\n"
                                  "{\"step\": 2, \"eval\": {\"loss\": 2.5, \"tokens\": 64, \"code\": {\"loss\": 1.5}}}\n"
                                  "{\"lr\": 0.1, \"step\": 3, \"loss\": null, \"not_finite\": {\"loss\": \"nan\"}}\n"
                                  "{\"step\": 4, \"loss\": null, \"not_finite\": {\"loss\": \"-inf\"}, \"lr\": 0.1}\n");
  RowFile rows(file);
  CHECK(rows.read() == News::more);
  CHECK(rows.steps().steps == std::vector<std::int64_t>{1, 2, 3, 4});
  const std::vector<double>& loss = values(rows, "loss");
  CHECK(loss[0] == 5.5);
  CHECK(is_gap(loss[1]));  // a mean over nothing
  CHECK((std::isnan(loss[2]) && !is_gap(loss[2])));
  CHECK((std::isinf(loss[3]) && loss[3] < 0));
  CHECK(values(rows, "tokens")[0] == 9007199254740991.0);
  CHECK(is_gap(values(rows, "tokens")[2]));
  CHECK(is_gap(values(rows, "own/x")[0]));
  CHECK(values(rows, "own/x")[1] == -0.25);
  CHECK(values(rows, "lr") == std::vector<double>{0, 1e-3, 0.1, 0.1});
  CHECK(rows.evals().steps == std::vector<std::int64_t>{2});
  CHECK(values(rows, "eval.loss") == std::vector<double>{2.5});
  CHECK(values(rows, "eval.code.loss") == std::vector<double>{1.5});
  CHECK(rows.names() == std::vector<std::string>{"loss", "lr", "tokens", "own/x", "eval.loss", "eval.tokens", "eval.code.loss"});
  CHECK(rows.broken_count() == 0);
  CHECK(rows.find("nothing").steps == nullptr);
}

TEST_CASE("report: only the numbers that are wanted are kept", "[report]") {
  const TempDir dir;
  const fs::path file = dir.write("metrics.jsonl",
                                  "{\"step\": 1, \"loss\": 5.5, \"lr\": 0.5, \"odd\": [1, {\"a\": 2}]}\n"
                                  "{\"step\": 1, \"eval\": {\"loss\": 2.5, \"accuracy\": 0.5}}\n");
  RowFile rows(file, {"lr", "eval.accuracy"});
  rows.read();
  CHECK(rows.names() == std::vector<std::string>{"lr", "eval.accuracy"});
  CHECK(values(rows, "lr") == std::vector<double>{0.5});
  CHECK(values(rows, "eval.accuracy") == std::vector<double>{0.5});
}

TEST_CASE("report: lines that are no rows are counted and passed over", "[report]") {
  const TempDir dir;
  const fs::path file = dir.write("metrics.jsonl",
                                  "{\"step\": 1, \"loss\": 1.0}\n"
                                  "{\"step\": 2, \"loss\": \n"
                                  "\n"
                                  "garbage\n"
                                  "{\"loss\": 3.0}\n"
                                  "{\"step\": 4, \"loss\": \"text\"}\n"
                                  "{\"step\": 5, \"loss\": 5.0} {}\n"
                                  "{\"step\": 1.5, \"loss\": 5.0}\n"
                                  "{\"step\": -1, \"loss\": 5.0}\n"
                                  "{\"step\": 6, \"loss\": 6.0}\n");
  RowFile rows(file);
  rows.read();
  CHECK(rows.steps().steps == std::vector<std::int64_t>{1, 6});
  CHECK(values(rows, "loss") == std::vector<double>{1, 6});
  CHECK(rows.broken_count() == 7);
  REQUIRE(rows.broken().size() == 7);
  CHECK(rows.broken()[0].line == 2);
  CHECK(rows.broken()[1].line == 4);
  CHECK_THAT(rows.broken()[3].fault, Contains("'loss' is no number"));
}

TEST_CASE("report: what is appended is read on from where the last look ended", "[report]") {
  const TempDir dir;
  const fs::path file = dir / "metrics.jsonl";
  RowFile rows(file);
  CHECK(rows.read() == News::nothing);  // not there yet
  append(file, "{\"step\": 1, \"loss\": 1.0}\n{\"step\": 2, \"lo");
  CHECK(rows.read() == News::more);
  CHECK(rows.read() == News::nothing);  // the line is not whole
  append(file, "ss\": 2.0}\n");
  CHECK(rows.read() == News::more);
  CHECK(values(rows, "loss") == std::vector<double>{1, 2});
  append(file, "{\"step\": 3, \"loss\": 3.0, \"late\": 1}\n");
  rows.read();
  CHECK(values(rows, "loss") == std::vector<double>{1, 2, 3});
  CHECK((is_gap(values(rows, "late")[1]) && values(rows, "late")[2] == 1));
  fs::remove(file);
  CHECK(rows.read() == News::nothing);
  CHECK(rows.steps().rows() == 3);
}

TEST_CASE("report: a file that is written anew is read again", "[report]") {
  const TempDir dir;
  const fs::path file = dir.write("metrics.jsonl", "{\"step\": 1, \"loss\": 1.0}\n{\"step\": 2, \"loss\": 2.0}\n");
  RowFile rows(file);
  rows.read();
  SECTION("another file of the same name, as when a run goes on") {
    fs::rename(dir.write("new", "{\"step\": 1, \"loss\": 1.0}\n"), file);
    CHECK(rows.read() == News::again);
    CHECK(values(rows, "loss") == std::vector<double>{1});
  }
  SECTION("the same file, shorter") {
    fs::resize_file(file, 25);
    append(file, "{\"step\": 2, \"own\": 7}\n");
    CHECK(rows.read() == News::again);
    CHECK(values(rows, "own").back() == 7);
  }
  SECTION("the same file and length, with other content") {
    const std::string text = "{\"step\": 1, \"loss\": 1.0}\n{\"step\": 2, \"loss\": 4.0}\n";
    std::ofstream(file) << text;
    CHECK(rows.read() == News::again);
    CHECK(values(rows, "loss").back() == 4);
  }
}

TEST_CASE("report: a metrics.jsonl that is no file is an error", "[report]") {
  const TempDir dir;
  fs::create_directories(dir / "metrics.jsonl");
  RowFile rows(dir / "metrics.jsonl");
  CHECK_THROWS_WITH(rows.read(), Contains("it is a folder"));
}

TEST_CASE("report: no damage of a file is more than rows that are lost", "[report]") {
  const TempDir dir;
  std::string whole;
  for (int step = 1; step <= 5; ++step) {
    whole +=
        "{\"step\": " + std::to_string(step) + ", \"loss\": 1.5, \"own/\\u00e4\": -2e-5, \"x\": null, \"not_finite\": {\"x\": \"inf\"}}\n";
    whole += "{\"step\": " + std::to_string(step) + ", \"eval\": {\"loss\": 2.5, \"code\": {\"loss\": null, \"tokens\": 4}}}\n";
  }
  std::mt19937 random(3);
  for (int round = 0; round < 400; ++round) {
    std::string text = whole;
    for (std::uint32_t i = 0; i <= random() % 4; ++i) {
      text[random() % text.size()] = static_cast<char>(random() % 3 == 0 ? random() % 256 : "{}[]\",:\\0\n"[random() % 10]);
    }
    text.resize(text.size() - random() % 40);
    const fs::path file = dir / "metrics.jsonl";
    std::ofstream(file, std::ios::trunc) << text;
    RowFile rows(file);
    rows.read();
    CHECK(rows.steps().rows() + rows.evals().rows() + static_cast<std::size_t>(rows.broken_count()) <= 60);
    CHECK(rows.steps().rows() + rows.evals().rows() >= 2);
    for (const kf::report::Column& column : rows.steps().columns) {
      CHECK(column.values.size() == rows.steps().rows());
    }
  }
}

TEST_CASE("report: numbers come back as the doubles that were written", "[report]") {
  const TempDir dir;
  const fs::path file = dir.write(
      "metrics.jsonl", "{\"step\": 1, \"a\": 0.1, \"b\": 2.2250738585072014e-308, \"c\": 4.9406564584124654e-324, \"d\": -0.0}\n");
  RowFile rows(file);
  rows.read();
  CHECK(values(rows, "a")[0] == 0.1);
  CHECK(values(rows, "b")[0] == 2.2250738585072014e-308);
  CHECK(values(rows, "c")[0] == 4.9406564584124654e-324);
  CHECK(std::signbit(values(rows, "d")[0]));
}

TEST_CASE("report: a long file that is read by several threads has the columns of one that is read bit by bit", "[report]") {
  const TempDir dir;
  std::mt19937 random(3);
  std::string text;
  std::vector<std::size_t> ends;  // a read each
  for (int step = 1; text.size() < (std::size_t{9} << 20); ++step) {
    if (random() % 2000 == 0) {
      text += "no row\n";
    }
    text += "{\"step\": " + std::to_string(step) + ", \"loss\": " + std::to_string(random() % 1000);
    if (random() % 3 == 0) {
      text += ", \"own/" + std::to_string(step / 9000) + "\": " + std::to_string(random());  // names come and go
    }
    text += random() % 500 == 0 ? ", \"lr\": null, \"not_finite\": {\"lr\": \"inf\"}}\n" : ", \"lr\": 0.5}\n";
    if (random() % 100 == 0) {
      text += "{\"step\": " + std::to_string(step) + ", \"eval\": {\"loss\": 1.5, \"set" + std::to_string(step / 20000) +
              "\": {\"loss\": " + std::to_string(step) + ".5}}}\n";
    }
    if (text.size() > 100'000 * (ends.size() + 1)) {
      ends.push_back(text.size());
    }
  }
  ends.push_back(text.size());
  RowFile whole(dir.write("whole.jsonl", text));
  whole.read();
  RowFile parts(dir.write("parts.jsonl", ""));
  for (std::size_t i = 0, begin = 0; i < ends.size(); begin = ends[i++]) {
    append(dir / "parts.jsonl", text.substr(begin, ends[i] - begin));
    parts.read();
  }
  CHECK(whole.names() == parts.names());
  CHECK(whole.names().size() > 10);
  for (const std::string& name : whole.names()) {
    CAPTURE(name);
    const RowFile::Series one = whole.find(name), other = parts.find(name);
    CHECK(*one.steps == *other.steps);
    REQUIRE(one.values->size() == other.values->size());
    CHECK(std::memcmp(one.values->data(), other.values->data(), one.values->size() * sizeof(double)) == 0);
  }
  CHECK(whole.broken_count() == parts.broken_count());
  REQUIRE(whole.broken().size() == parts.broken().size());
  REQUIRE(whole.broken().size() > 5);
  for (std::size_t i = 0; i < whole.broken().size(); ++i) {
    CHECK(whole.broken()[i].line == parts.broken()[i].line);
  }
  whole.read();  // nothing new
  CHECK(whole.steps().rows() == parts.steps().rows());
}
