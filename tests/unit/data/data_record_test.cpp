// What a checkpoint says of the data, and the words for what changed.

#include "data/documents/data_record.h"
#include "data/read/reader.h"
#include "support/temp_dir.h"

#include <catch2/catch.hpp>

namespace {

using Catch::Contains;
using kf::data_changes;
using kf::data_record;
using kf::FilePrint;

std::string record(const std::string& head, const std::vector<FilePrint>& files) { return head + "\n" + kf::file_lines(files); }

}  // namespace

TEST_CASE("data record: the files that changed are named, those that came and went, too") {
  const std::string before = record("aa", {{"a.txt", "1"}, {"b c.txt", "2"}, {"old.txt", "3"}});
  CHECK(data_changes(before, before, "runs/x").training.empty());
  const std::string after = record("bb", {{"a.txt", "1"}, {"b c.txt", "9"}, {"new.txt", "3"}});
  CHECK(data_changes(before, after, "runs/x").training ==
        "the data files have changed since runs/x was saved: b c.txt, new.txt (new), old.txt (gone)");
  // A source of one hash holds the same: new names are none of its change, another content is.
  CHECK(data_changes(before, record("aa", {{"d/a.txt", "1"}}), "x").training.empty());
  CHECK_THAT(data_changes(before, record("aa", {{"a.txt", "7"}}), "x").training, Contains("saved: a.txt"));
}

TEST_CASE("data record: of many files the first are named") {
  std::vector<FilePrint> before;
  std::vector<FilePrint> after;
  for (int i = 0; i < 9; ++i) {
    before.push_back({"f" + std::to_string(i), "1"});
    after.push_back({"f" + std::to_string(i), "2"});
  }
  CHECK_THAT(data_changes(record("a", before), record("b", after), "x").training, Contains("f0, f1, f2, f3, f4 and 4 more"));
}

TEST_CASE("data record: sources of a mixture, hold-outs and records of older programs") {
  const std::string one = "aa first\n" + kf::file_lines({{"a.txt", "1"}}) + "bb second set\n" + kf::file_lines({{"b.txt", "2"}});
  const std::string two = "aa first\n" + kf::file_lines({{"a.txt", "1"}}) + "cc second set\n" + kf::file_lines({{"b.txt", "3"}});
  CHECK(data_changes(one, two, "x").training == "the files of data set 'second set' have changed since x was saved: b.txt");
  // Without lines of files: as an older program wrote it.
  CHECK(data_changes("aa first\nbb second set\n", one, "x").training.empty());
  CHECK(data_changes("aa first\nbb second set\n", two, "x").training ==
        "the files of data set 'second set' have changed since x was saved");
  CHECK(data_changes("aa", record("aa", {{"a", "1"}}), "x").training.empty());
  CHECK(!data_changes("aa\nholdout=0.1", "aa\nholdout=0.2", "x").training.empty());
  CHECK(data_changes("aa\nholdout=0.1", record("aa", {}) + "\nholdout=0.1", "x").training.empty());
}

TEST_CASE("data record: evaluation sets are compared apart from what is learned from") {
  const std::string train = record("aa", {{"a.txt", "1"}});
  const std::string before = data_record(train, {{"", record("ee", {{"v.txt", "1"}})}, {"code", record("ff", {{"c.txt", "1"}})}});
  const std::string after = data_record(train, {{"", record("e2", {{"v.txt", "2"}})}, {"code", record("ff", {{"c.txt", "1"}})}});
  const kf::DataChanges changes = data_changes(before, after, "x");
  CHECK(changes.training.empty());
  CHECK(changes.evaluation == "the evaluation data have changed since x was saved: v.txt");
  const std::string named = data_record(train, {{"code", record("f2", {{"c.txt", "2"}})}});
  CHECK(data_changes(before, named, "x").evaluation == "the evaluation sets 'code' have changed since x was saved: c.txt");
  CHECK(data_changes(train, after, "x").evaluation.empty());
  CHECK(data_changes(before, train, "x").training.empty());
}

TEST_CASE("data record: samples of a file see its size, its ends and places between") {
  const kf::test::TempDir dir;
  std::string content(3 << 20, 'a');
  const auto print = [&] {
    kf::SourceFiles files;
    files.files.push_back({dir.write("x.npy", content), "x.npy", 0, {}, "", nullptr});
    return kf::sampled_prints(files).front().hash;
  };
  const std::string first = print();
  CHECK(print() == first);
  content[10] = 'b';
  const std::string second = print();
  CHECK(second != first);
  std::fill(content.begin() + (1 << 20), content.begin() + (2 << 20), 'c');
  CHECK(print() != second);
}
