#pragma once
// The samples of tests/unit/data/read/files and what formats.json there says about them.

#include <catch2/catch.hpp>

#include <nlohmann/json.hpp>

#include "data/file/utf8.h"
#include "unit/data/read/texts.h"

namespace kf::test {

inline fs::path sample(const std::string& name) { return fs::path(KF_SOURCE_DIR) / "tests/unit/data/read/files" / name; }

inline nlohmann::json sample_entry(const std::string& name) {
  const nlohmann::json all = nlohmann::json::parse(read_file(sample("formats.json")));
  for (const nlohmann::json& one : all.at("files")) {
    if (one.at("file") == name) {
      return one;
    }
  }
  FAIL("no entry " << name);
  return {};
}

inline void check_sample(const std::string& name, const ReadOptions& options = {}) {
  CAPTURE(name);
  const nlohmann::json expected = sample_entry(name);
  const std::vector<std::string> texts = texts_of(sample(name), options);
  CHECK(texts.size() == expected.at("documents"));
  CHECK(digest_of(texts) == expected.at("sha256_text_nul"));
  std::int64_t characters = 0;
  for (const std::string& text : texts) {
    characters += count_characters(text);
  }
  CHECK(characters == expected.at("characters"));
}

}  // namespace kf::test
