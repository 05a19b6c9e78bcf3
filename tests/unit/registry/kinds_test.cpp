// kinds.def against the settings and docs/scripting.md. That adapters and rows of the API are complete is checked where they compile.
#include "registry/kinds.h"

#include <catch2/catch.hpp>

#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "config/schema/schema.h"
#include "core/fs.h"
#include "core/text.h"
#include "registry/registries.h"

using namespace kf;

namespace {

/// Whether a row, or one of the tables in its list, takes names of this kind. (data.datasets[i].dataset does so without a check.)
bool asks_for(const config::Row& row, std::string_view kind) {
  return row.check.kind == kind || row.name == kind ||
         std::any_of(row.fields.begin(), row.fields.end(), [&](const auto& field) { return asks_for(field, kind); });
}

bool is_kind(std::string_view name) {
  return std::any_of(kPartKinds.begin(), kPartKinds.end(), [&](const PartKind& kind) { return kind.name == name; });
}

void check_kinds_of(const config::Row& row) {
  CAPTURE(row.section, row.name);
  CHECK((row.check.kind.empty() || is_kind(row.check.kind)));
  for (const config::Row& field : row.fields) {
    check_kinds_of(field);
  }
}

/// First cell of the tables of a page to second cells: "sink" to "`metrics.sinks`".
std::multimap<std::string, std::string> table_rows(const fs::path& page) {
  std::multimap<std::string, std::string> rows;
  for (const std::string& line : split(read_file(page), '\n')) {
    const std::vector<std::string> cells = split(line, '|');
    if (cells.size() > 2) {
      rows.emplace(trim(cells[1]), trim(cells[2]));
    }
  }
  return rows;
}

}  // namespace

TEST_CASE("kinds: registries has one of each, under its name and in their order", "[registry]") {
  const Registries registries;
  std::vector<std::string> names;
  for_each_kind(registries, [&](const auto& registry) { names.push_back(registry.kind()); });
  REQUIRE(names.size() == kPartKinds.size());
  CHECK(
      std::equal(names.begin(), names.end(), kPartKinds.begin(), [](const auto& name, const PartKind& kind) { return name == kind.name; }));
  CHECK(registries.catalog().size() == kPartKinds.size());
}

TEST_CASE("kinds: settings ask for kinds that exist, and the key that chooses a part asks for its kind", "[registry]") {
  for (const config::Row& row : config::rows()) {
    check_kinds_of(row);
  }
  for (const PartKind& kind : kPartKinds) {
    CAPTURE(kind.name, kind.chosen_by);
    bool asked = kind.name == "tokenizer";  // a path, too: only what begins with "lua:" names a part
    for (const std::string& word : split(std::string(kind.chosen_by), ' ')) {
      const config::Row* const row = config::find_row(word.substr(0, word.find('[')));
      asked = asked || (row != nullptr && asks_for(*row, kind.name));
    }
    CHECK(asked);
  }
}

TEST_CASE("kinds: docs/scripting.md has a line for each, with the keys that choose it", "[registry]") {
  const auto rows = table_rows(fs::path(KF_SOURCE_DIR) / "docs/scripting.md");
  for (const PartKind& kind : kPartKinds) {
    CAPTURE(kind.name);
    const auto [first, last] = rows.equal_range(std::string(kind.name));
    CHECK(first != last);
    for (auto row = first; row != last; ++row) {
      const std::vector<std::string> words = split(row->second, '`');  // every second one is code
      CHECK(words.size() > 1);
      for (std::size_t i = 1; i < words.size(); i += 2) {
        CAPTURE(words[i]);
        CHECK(kind.chosen_by.find(words[i]) != std::string_view::npos);
      }
    }
  }
}
