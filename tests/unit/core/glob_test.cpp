#include <catch2/catch.hpp>

#include "core/error.h"
#include "core/fs.h"
#include "support/temp_dir.h"

using namespace kf;
using Names = std::vector<std::string>;

namespace {

/// A folder with the files of the tests below.
class Tree {
 public:
  Tree() {
    for (const char* name : {"a.txt", "b.txt", "c.md", "x[1].txt", ".hidden.txt", "sub/d.txt", "sub/deep/e.txt", ".git/f.txt", "B.txt"}) {
      dir.write(name, "text");
    }
  }
  /// What matches, relative to the folder.
  Names match(std::string_view pattern) const {
    Names out;
    for (const fs::path& path : glob(dir.path(), pattern)) {
      out.push_back(path.lexically_relative(dir.path()).string());
    }
    return out;
  }
  test::TempDir dir;
};

}  // namespace

TEST_CASE("glob: a star stays inside one part of the path, and the order is bytewise", "[glob]") {
  const Tree tree;
  CHECK(tree.match("*.txt") == Names{"B.txt", "a.txt", "b.txt", "x[1].txt"});
  CHECK(tree.match("*/*.txt") == Names{"sub/d.txt"});
  CHECK(tree.match("?.md") == Names{"c.md"});
  CHECK(tree.match("none*").empty());
}

TEST_CASE("glob: two stars cross parts, none included", "[glob]") {
  const Tree tree;
  CHECK(tree.match("**/*.txt") == Names{"B.txt", "a.txt", "b.txt", "sub/d.txt", "sub/deep/e.txt", "x[1].txt"});
  CHECK(tree.match("sub/**") == Names{"sub/d.txt", "sub/deep/e.txt"});
  CHECK(tree.match("**/deep/*") == Names{"sub/deep/e.txt"});
}

TEST_CASE("glob: sets, ranges and alternatives are as in a shell", "[glob]") {
  const Tree tree;
  CHECK(tree.match("[ab].txt") == Names{"a.txt", "b.txt"});
  CHECK(tree.match("[a-c].*") == Names{"a.txt", "b.txt", "c.md"});
  CHECK(tree.match("[!a-z].txt") == Names{"B.txt"});
  CHECK(tree.match("{a.txt,c.md}") == Names{"a.txt", "c.md"});
  CHECK(tree.match("{sub/{d,x},a}.txt") == Names{"a.txt", "sub/d.txt"});
  CHECK(tree.match("x[[]1].txt") == Names{"x[1].txt"});
}

TEST_CASE("glob: a file that several alternatives name counts once", "[glob]") {
  const Tree tree;
  CHECK(tree.match("{a.txt,*.txt,a*}") == Names{"B.txt", "a.txt", "b.txt", "x[1].txt"});
}

TEST_CASE("glob: what cannot be a set or an alternative is taken as it stands", "[glob]") {
  const Tree tree;
  tree.dir.write("open{.txt", "");
  tree.dir.write("open[.txt", "");
  CHECK(tree.match("open{.txt") == Names{"open{.txt"});
  CHECK(tree.match("open[.txt") == Names{"open[.txt"});
}

TEST_CASE("glob: hidden parts need a dot of their own", "[glob]") {
  const Tree tree;
  CHECK(tree.match(".*.txt") == Names{".hidden.txt"});
  CHECK(tree.match(".git/*") == Names{".git/f.txt"});
}

TEST_CASE("glob: links are followed, and each real file counts once", "[glob]") {
  const Tree tree;
  fs::create_symlink("a.txt", tree.dir / "z.txt");
  CHECK(tree.match("[az].txt") == Names{"a.txt"});
  CHECK(tree.match("z.txt") == Names{"z.txt"});
  fs::create_symlink("nowhere", tree.dir / "broken.txt");
  CHECK(tree.match("broken.txt") == Names{"broken.txt"});  // whoever reads it meets its absence
}

TEST_CASE("glob: a link to a folder above ends", "[glob]") {
  const Tree tree;
  fs::create_directory_symlink("..", tree.dir / "sub" / "up");
  const Names all = tree.match("**/*.txt");
  CHECK(all.size() == 6);
}

TEST_CASE("glob: a folder that does not exist is an error, not an empty list", "[glob]") {
  const Tree tree;
  CHECK_THROWS_AS(glob(tree.dir / "none", "*"), Error);
}

TEST_CASE("glob: a pattern with many stars is still decided at once", "[glob]") {
  const test::TempDir dir;
  dir.write(std::string(200, 'a'), "");
  std::string pattern;
  for (int i = 0; i < 30; ++i) {
    pattern += "*a";
  }
  CHECK(glob(dir.path(), pattern + "b").empty());
}
