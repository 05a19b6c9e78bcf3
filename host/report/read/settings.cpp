#include "report/read/settings.h"

#include <algorithm>
#include <iterator>
#include <map>

#include "config/load/toml.h"
#include "config/schema/schema.h"
#include "core/error.h"
#include "core/plain_file.h"

namespace kf::report {
namespace {

constexpr std::uint64_t kMostJob = std::uint64_t{64} << 20;

void flatten(const config::Table& table, const std::string& prefix, std::vector<Setting>& out) {
  for (const auto& [name, value] : table) {
    const std::string key = prefix + name;
    if (value.table() != nullptr && config::find_row(key) == nullptr) {
      flatten(*value.table(), key + ".", out);
    } else {
      out.emplace_back(key, value);
    }
  }
}

}  // namespace

std::vector<Setting> settings_of(const fs::path& run) { return settings_in(run / "job.toml"); }

std::vector<Setting> settings_in(const fs::path& file) {
  config::Report report;
  const std::optional<config::Table> table =
      config::parse_toml(read_regular_file(file, kMostJob), file.string(), config::Origin::Kind::toml, report);
  KF_CHECK(table.has_value(), Code::other, "{} cannot be read: {}", file, config::to_text(report));
  std::vector<Setting> out;
  flatten(*table, "", out);
  return out;
}

std::vector<Setting> changed_settings(const std::vector<Setting>& settings) {
  std::vector<Setting> out;
  std::copy_if(settings.begin(), settings.end(), std::back_inserter(out), [](const Setting& setting) {
    const config::Row* const row = config::find_row(setting.first);
    return row == nullptr || !(row->fallback == setting.second);
  });
  return out;
}

std::vector<SettingRow> compare_settings(const std::vector<std::vector<Setting>>& runs, bool all) {
  std::vector<std::string> keys;
  std::map<std::string, std::vector<std::optional<config::Node>>> values;
  for (std::size_t run = 0; run < runs.size(); ++run) {
    for (const auto& [key, value] : runs[run]) {
      auto [at, is_new] = values.try_emplace(key, runs.size());
      if (is_new) {
        keys.push_back(key);
      }
      at->second[run] = value;
    }
  }
  std::vector<SettingRow> out;
  for (const std::string& key : keys) {
    std::vector<std::optional<config::Node>>& row = values[key];
    const bool alike = std::all_of(row.begin(), row.end(), [&row](const auto& value) { return value == row.front(); });
    if (all || !alike) {
      out.push_back({key, std::move(row)});
    }
  }
  return out;
}

}  // namespace kf::report
