#include <catch2/catch.hpp>

#include "core/error.h"
#include "core/log.h"
#include "data/file/braces.h"
#include "support/temp_dir.h"
#include "unit/data/read/texts.h"

namespace {

using namespace kf;
using Catch::Matchers::Contains;
using Names = std::vector<std::string>;

Names names(const SourceFiles& source) {
  Names out;
  for (const SourceFile& file : source.files) {
    out.push_back(file.name);
  }
  return out;
}

SourceFiles resolve(const Names& paths, const std::string& pattern = "") {
  SourceRequest request;
  request.paths = paths;
  request.pattern = pattern;
  return resolve_source(request);
}

std::string error(const Names& paths, const std::string& pattern = "") {
  try {
    resolve(paths, pattern);
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

}  // namespace

TEST_CASE("source: braces expand as a shell expands them", "[read]") {
  CHECK(expand_braces("a") == Names{"a"});
  CHECK(expand_braces("a{b,c{d,e}}f") == Names{"abf", "acdf", "acef"});
  CHECK(expand_braces("{8..11}") == Names{"8", "9", "10", "11"});
  CHECK(expand_braces("p-{008..010}") == Names{"p-008", "p-009", "p-010"});
  CHECK(expand_braces("{2..0}{a..b}") == Names{"2a", "2b", "1a", "1b", "0a", "0b"});
  CHECK(expand_braces("{x}{1..2}") == Names{"{x}1", "{x}2"});
  CHECK(expand_braces("a{b") == Names{"a{b"});
  CHECK_THROWS_WITH(expand_braces("{1..99999999}"), Contains("names 99999999 files"));
}

TEST_CASE("source: folders, globs, lists and ranges become files in order", "[read]") {
  const test::TempDir dir;
  for (const char* name : {"part-0.jsonl", "part-1.jsonl", "part-2.jsonl", "sub/x.txt", "README.md", "LICENSE"}) {
    dir.write(name, "{\"text\": \"a\"}\n");
  }
  const std::string base = dir.path().string();
  CHECK(names(resolve({base})) == Names{"part-0.jsonl", "part-1.jsonl", "part-2.jsonl", "sub/x.txt"});
  CHECK(names(resolve({base}, "*.jsonl")) == Names{"part-0.jsonl", "part-1.jsonl", "part-2.jsonl"});
  CHECK(names(resolve({base + "/part-{2..1}.jsonl"})) == Names{"part-2.jsonl", "part-1.jsonl"});
  CHECK(names(resolve({base + "/*-[01].jsonl"})) == Names{"part-0.jsonl", "part-1.jsonl"});
  CHECK(names(resolve({base + "/**/*.txt"})) == Names{"sub/x.txt"});
  CHECK(names(resolve({base + "/sub/x.txt", base + "/part-0.jsonl"})) == Names{"x.txt", "part-0.jsonl"});
}

TEST_CASE("source: a file that links and names reach twice counts once", "[read]") {
  const test::TempDir dir;
  const fs::path file = dir.write("a.txt", "a");
  fs::create_symlink(file, dir / "b.txt");
  const std::string base = dir.path().string();
  CHECK(names(resolve({base})) == Names{"a.txt"});
  CHECK(names(resolve({base + "/b.txt", base + "/a.txt"})) == Names{"b.txt"});
}

TEST_CASE("source: what is missing is named, with what is there", "[read]") {
  const test::TempDir dir;
  dir.write("part-0.jsonl", "{\"text\": \"a\"}\n");
  const std::string base = dir.path().string();
  CHECK_THAT(error({base + "/part-1.jsonl"}), Contains("no such file or folder; did you mean") && Contains("part-0.jsonl?"));
  CHECK_THAT(error({base + "/part-{0..1}.jsonl"}), Contains("there is no") && Contains("part-1.jsonl"));
  CHECK_THAT(error({base + "/*.txt"}), Contains("nothing matches *.txt") && Contains("such as part-0.jsonl"));
  CHECK_THAT(error({base}, "*.npy"), Contains("no files match data.file_pattern = \"*.npy\"") && Contains("**/*.jsonl"));
  fs::create_directory(dir / "empty");
  CHECK_THAT(error({base + "/empty"}), Contains("the folder holds no files"));
}

TEST_CASE("source: token files and text do not mix", "[read]") {
  const test::TempDir dir;
  dir.write("a.bin", "1234");
  CHECK(resolve({dir.path().string()}).tokens);
  dir.write("a.txt", "a");
  CHECK_THAT(error({dir.path().string()}), Contains("matches token files (a.bin) and others (a.txt)"));
}

TEST_CASE("source: content tells what names do not", "[read]") {
  const test::TempDir dir;
  dir.write("lines", "{\"text\": \"a\"}\n");
  dir.write("list", "[{\"text\": \"a\"}]");
  dir.write("prose", "a b c\n");
  dir.write("odd", std::string("\0\1\2", 3));
  CHECK(test::source_of(dir / "lines").files[0].kind.format == FileFormat::jsonl);
  CHECK(test::source_of(dir / "list").files[0].kind.format == FileFormat::json);
  CHECK(test::source_of(dir / "prose").files[0].kind.format == FileFormat::text);
  CHECK_THAT(test::error_of(dir / "odd"), Contains("holds neither UTF-8 text nor a format"));
}

TEST_CASE("source: a link to nothing in a folder, a pattern or a list is named, not passed over", "[read]") {
  const test::TempDir dir;
  dir.write("d/a.txt", "a");
  const std::string target = GENERATE("nowhere", "b.txt");  // the second is a link to itself
  fs::create_symlink(target, dir / "d/b.txt");
  const std::string fault = "b.txt is a link to " + target;
  CHECK_THAT(error({(dir / "d").string()}), Contains(fault) && Contains("mend the link or remove it"));
  CHECK_THAT(error({(dir / "d").string()}, "**/*.txt"), Contains(fault));
  CHECK_THAT(error({(dir / "*/*.txt").string()}), Contains(fault));
  CHECK_THAT(error({(dir / "d/{a,b}.txt").string()}), Contains(fault));
  CHECK(names(resolve({(dir / "d").string()}, "a*")) == Names{"a.txt"});  // no part of the pattern
}

TEST_CASE("source: a link to nothing that may have been a folder of data is warned about", "[read]") {
  const test::TempDir dir;
  dir.write("d/a.txt", "a");
  fs::create_directory_symlink("lost", dir / "d/part2");
  for (const char* pattern : {"", "**/*.txt", "{,*/}*.txt"}) {
    const std::size_t before = log::count(log::Level::warn);
    CHECK(names(resolve({(dir / "d").string()}, pattern)) == Names{"a.txt"});
    CHECK(log::count(log::Level::warn) == before + 1);
  }
}

TEST_CASE("source: UTF-16 without a mark is recognised in text of every kind", "[read]") {
  const test::TempDir dir;
  const std::string name = GENERATE("a.txt", "a.jsonl", "a.json", "a.csv", "noname");
  const bool little = GENERATE(true, false);
  std::string wide;
  for (const char c : std::string("{\"text\": \"words\"}\n")) {
    wide += little ? std::string{c, '\0'} : std::string{'\0', c};
  }
  dir.write(name, wide);
  CHECK_THAT(error({(dir / name).string()}),
             Contains(name + ": UTF-16 text without its mark") && Contains(little ? "UTF-16LE" : "UTF-16BE"));
}

TEST_CASE("source: text with a byte that is not UTF-8 is named with the byte", "[read]") {
  const test::TempDir dir;
  dir.write("a.txt", "abc\nd\xe9");
  CHECK_THAT(test::error_of(dir / "a.txt"), Contains("a.txt:2: not valid UTF-8 at byte 6 of 6 (0xe9); text must be UTF-8: convert it"));
  dir.write("b.txt",
            "\xff\xfe"
            "a");
  CHECK_THAT(test::error_of(dir / "b.txt"), Contains("UTF-16"));
  dir.write("c.jsonl", std::string("\xff\xfe{\0}\0\n\0", 8));
  CHECK_THAT(test::error_of(dir / "c.jsonl"), Contains("c.jsonl: UTF-16 text; convert it"));
  fs::create_symlink("nowhere", dir / "link.txt");
  CHECK_THAT(test::error_of(dir / "link.txt"), Contains("link.txt is a link to nowhere, which is not there"));
}
