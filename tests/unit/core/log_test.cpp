#include "core/log.h"

#include <catch2/catch.hpp>

#include <algorithm>
#include <optional>
#include <thread>

#include "core/error.h"
#include "core/fs.h"
#include "core/text.h"
#include "support/file_size_limit.h"
#include "support/temp_dir.h"

using namespace kf;
using Catch::Matchers::Contains;

TEST_CASE("log: lines are counted by level", "[log]") {
  const std::size_t before = log::count(log::Level::warn);
  const std::size_t errors = log::count(log::Level::error);
  log::warn("about {}", "something");
  CHECK(log::count(log::Level::warn) == before + 1);
  CHECK(log::count(log::Level::error) == errors);
}

TEST_CASE("log: a file takes every line with its level, appended", "[log]") {
  const test::TempDir dir;
  const fs::path file = dir.write("run.log", "earlier\n");
  log::open_file(file);
  log::info("first {}", 1);
  log::write(log::Level::debug, "quiet on the terminal");
  log::error("braces {} stay {}", "{}", "here");
  log::close_file();
  log::info("after");
  const std::string text = read_file(file);
  CHECK_THAT(text, Contains("earlier\n") && Contains("info first 1\n") && Contains("debug quiet on the terminal\n"));
  CHECK_THAT(text, Contains("error braces {} stay here\n"));
  CHECK_THAT(text, !Contains("after"));
}

TEST_CASE("log: lines that the disk does not take are written later, in order, and none by half", "[log]") {
  const test::TempDir dir;
  log::open_file(dir / "run.log");
  log::info("first");
  std::optional<test::FileSizeLimit> full(fs::file_size(dir / "run.log") + 10);  // the next line fits by half
  log::info("second");
  log::info("third");
  const std::string meanwhile = read_file(dir / "run.log");
  full.reset();
  log::info("fourth");
  log::close_file();
  CHECK_THAT(meanwhile, Catch::EndsWith("info first\n"));
  const std::string text = read_file(dir / "run.log");
  CHECK(split(text, '\n').size() == split(meanwhile, '\n').size() + 3);
  CHECK(text.find("second") < text.find("third"));
  CHECK(text.find("third") < text.find("fourth"));
}

TEST_CASE("log: a file that cannot be opened is an error that names it", "[log]") {
  const test::TempDir dir;
  dir.write("file", "");
  CHECK_THROWS_WITH(log::open_file(dir / "file" / "run.log"), Contains("run.log"));
}

namespace {
int asides = 0;
int returns = 0;
}  // namespace

TEST_CASE("log: a progress bar steps aside for every line on the terminal", "[log]") {
  asides = returns = 0;
  log::set_terminal_guard([] { ++asides; }, [] { ++returns; });
  log::info("one");
  log::write(log::Level::debug, "not on the terminal");
  log::set_terminal_guard(nullptr, nullptr);
  log::info("two");
  CHECK(asides == 1);
  CHECK(returns == 1);
}

TEST_CASE("log: a file has the lines from before it was opened, too, and those of the next file are not in it", "[log]") {
  const test::TempDir dir;
  log::open_file(dir / "earlier.log");
  log::close_file();
  log::warn("before");
  log::open_file(dir / "run.log");
  log::close_file();
  log::open_file(dir / "next.log");
  log::close_file();
  const std::string text = read_file(dir / "run.log");
  CHECK(text.find("warning before") != std::string::npos);
  CHECK(std::count(text.begin(), text.end(), '\n') == 1);
  CHECK(read_file(dir / "next.log").empty());
}

TEST_CASE("log: lines of several threads do not mix", "[log]") {
  const test::TempDir dir;
  log::open_file(dir / "earlier.log");  // takes what was said before
  log::open_file(dir / "run.log");
  {
    std::vector<std::jthread> threads;
    for (int i = 0; i < 4; ++i) {
      threads.emplace_back([i] {
        for (int n = 0; n < 50; ++n) {
          log::write(log::Level::debug, std::string(40, static_cast<char>('a' + i)));
        }
      });
    }
  }
  log::close_file();
  std::size_t whole = 0;
  for (const std::string& line : split(read_file(dir / "run.log"), '\n')) {
    const std::size_t at = line.rfind(' ');
    if (at != std::string::npos) {
      CHECK(line.substr(at + 1) == std::string(40, line.back()));
      ++whole;
    }
  }
  CHECK(whole == 200);
}
