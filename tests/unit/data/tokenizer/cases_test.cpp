// Stored cases: small tokenizers of each kind, made by oracle.py.

#include "unit/data/tokenizer/cases.h"

#include <catch2/catch.hpp>

#include "core/fs.h"
#include "core/text.h"
#include "data/tokenizer/json.h"
#include "data/tokenizer/tokenizer.h"

namespace kf::test {
namespace {

std::vector<std::int64_t> ids_of(const json::Value& value) {
  std::vector<std::int64_t> out;
  for (const json::Value& item : value.items) {
    out.push_back(static_cast<std::int64_t>(item.number));
  }
  return out;
}

std::string show(const std::vector<std::int64_t>& ids) {
  std::string out;
  for (const std::int64_t id : ids) {
    out += std::to_string(id) + " ";
  }
  return out;
}

class Checker {
 public:
  explicit Checker(const fs::path& folder) : tokenizer_(open_tokenizer(folder.string())) {}

  void check(const json::Value& entry) {
    if (const json::Value* noise = entry.find("noise")) {
      text(ids_of(*noise), *entry.find("decoded"), false);
      return;
    }
    const std::string& input = entry.find("text")->text;
    ids(input, entry.find("ids"), {SpecialText::special});
    ids(input, entry.find("text_ids"), {SpecialText::text});
    ids(input, entry.find("special_ids"), {SpecialText::special, Surround::text});
    for (const char* key : {"decoded", "decoded_skip"}) {
      if (const json::Value* wanted = entry.find(key)) {
        text(ids_of(*entry.find("ids")), *wanted, key == std::string("decoded_skip"));
      }
    }
  }
  CaseCount count;

 private:
  void ids(const std::string& input, const json::Value* wanted, const EncodeOptions& options) {
    if (wanted == nullptr) {
      return;
    }
    std::vector<std::uint32_t> got;
    tokenizer_->append(input, got, options);
    report({got.begin(), got.end()}, ids_of(*wanted), input);
  }
  void text(const std::vector<std::int64_t>& ids, const json::Value& wanted, bool skip) {
    const std::string got = skip ? tokenizer_->decode(ids) : tokenizer_->decode_with_special(ids);
    ++count.cases;
    // Python's strings cannot hold bytes that are no UTF-8, so there they are replaced.
    if (got != wanted.text && json::parse_string(json::quote(got), "") != wanted.text && is_utf8(got)) {
      ++count.wrong;
      note("decoding " + show(ids) + "\n  gives  " + json::quote(got) + "\n  wanted " + json::quote(wanted.text));
    }
  }
  void report(const std::vector<std::int64_t>& got, const std::vector<std::int64_t>& wanted, const std::string& input) {
    ++count.cases;
    if (got != wanted) {
      ++count.wrong;
      note(json::quote(input) + "\n  gives  " + show(got) + "\n  wanted " + show(wanted));
    }
  }
  void note(const std::string& what) {
    if (count.wrong <= 3) {
      count.first += what + "\n";
    }
  }

  std::unique_ptr<Tokenizer> tokenizer_;
};

}  // namespace

CaseCount check_cases(const std::filesystem::path& folder) {
  Checker checker(folder);
  for (const std::string& line : split(read_file(folder / "cases.jsonl"), '\n')) {
    if (!line.empty()) {
      checker.check(json::parse(line, (folder / "cases.jsonl").string()));
    }
  }
  return checker.count;
}

TEST_CASE("tokenizer: stored cases of every kind give the ids and texts of the libraries that made them") {
  int folders = 0;
  for (const fs::path& cases : glob(fs::path(KF_SOURCE_DIR) / "tests/unit/data/tokenizer/files", "*/cases.jsonl")) {
    const CaseCount count = check_cases(cases.parent_path());
    INFO(cases.parent_path().filename() << "\n" << count.first);
    CHECK(count.cases > 0);
    CHECK(count.wrong == 0);
    ++folders;
  }
  CHECK(folders >= 4);
}

}  // namespace kf::test
