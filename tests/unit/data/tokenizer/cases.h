#pragma once
// Folders with a tokenizer and cases.jsonl, what another library makes of texts.

#include <filesystem>
#include <string>

namespace kf::test {

struct CaseCount {
  int cases = 0;
  int wrong = 0;
  std::string first;  // the first few that were wrong, for messages
};

/// Encodes and decodes every case of `folder` and compares.
CaseCount check_cases(const std::filesystem::path& folder);

}  // namespace kf::test
