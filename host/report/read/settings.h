#pragma once
// The settings of runs, side by side.

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "config/tree/node.h"
#include "core/fs.h"

namespace kf::report {

/// A setting by its key ("optimizer.lr") and its value; lists are whole.
using Setting = std::pair<std::string, config::Node>;

/// Every setting of a run's job.toml, in its order, with the own tables of parts ("scheduler.half.factor"). Throws Code::other where the
/// file cannot be read or is no TOML.
std::vector<Setting> settings_of(const fs::path& run);
/// The same of a file.
std::vector<Setting> settings_in(const fs::path& file);

/// Those whose values are not the defaults of this program; keys that it does not know are among them.
std::vector<Setting> changed_settings(const std::vector<Setting>& settings);

/// A key that several runs have not alike.
struct SettingRow {
  std::string key;
  std::vector<std::optional<config::Node>> values;  // one a run; nothing where it does not have the key
};
/// The keys in which the runs are not alike, in the order of the first one, then of the others; all keys with `all`.
std::vector<SettingRow> compare_settings(const std::vector<std::vector<Setting>>& runs, bool all = false);

}  // namespace kf::report
