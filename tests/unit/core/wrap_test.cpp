// Lines that fit a terminal.

#include "core/wrap.h"

#include <catch2/catch.hpp>

using kf::columns_of;
using kf::wrapped;

TEST_CASE("wrap: text is broken at blanks and indented", "[text]") {
  CHECK(wrapped("", 10, 2).empty());
  CHECK(wrapped("short", 10, 2) == "short");
  CHECK(wrapped("one two three", 13, 2) == "one two three");
  CHECK(wrapped("one two three", 12, 2) == "one two\n  three");
  CHECK(wrapped("  one two  three", 9, 4) == "  one two\n    three");  // the start keeps its blanks, a break takes those around it
  CHECK(wrapped("a  b", 10, 2) == "a  b");
}

TEST_CASE("wrap: a word that is too long stays whole", "[text]") {
  CHECK(wrapped("/a/very/long/path is here", 10, 2) == "/a/very/long/path\n  is here");
  CHECK(wrapped("see /a/very/long/path", 10, 2) == "see\n  /a/very/long/path");
}

TEST_CASE("wrap: a page of help goes on below its descriptions", "[text]") {
  const std::string line = "  --choices FILE   multiple choice, one question a line, and some more words that are too many for it";
  CHECK(kf::folded("usage: x\n\n" + line + "\n") ==
        "usage: x\n\n  --choices FILE   multiple choice, one question a line, and some more words\n" + std::string(19, ' ') +
            "that are too many for it\n");
  CHECK(kf::folded(std::string(81, 'x')) == std::string(81, 'x'));
  CHECK(kf::folded("").empty());
}

TEST_CASE("wrap: a character takes one column, however many bytes it has", "[text]") {
  CHECK(columns_of("äöü→") == 4);
  CHECK(wrapped("äöü äöü", 7, 2) == "äöü äöü");
}
