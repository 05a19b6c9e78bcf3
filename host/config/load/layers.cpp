#include "config/load/layers.h"

#include <algorithm>
#include <charconv>

#include "config/load/toml.h"
#include "core/error.h"
#include "core/text.h"

namespace kf::config {
namespace {

/// What cannot be a job would be read until the memory is full: devices that never end, files of another kind. "" when it may be one.
std::string unlike_a_job(const fs::path& path) {
  constexpr std::uintmax_t kMost = std::uintmax_t{64} << 20;
  std::error_code ignored;
  if (fs::is_character_file(path, ignored) || fs::is_block_file(path, ignored)) {
    return "is a device";
  }
  const std::uintmax_t size = fs::is_regular_file(path, ignored) ? fs::file_size(path, ignored) : 0;
  return !ignored && size > kMost ? format("has {} bytes, more than any job", size) : "";
}

/// Follows `extends` from the top of a chain down, so that the layers can be laid on each other from below.
class ChainReader {
 public:
  explicit ChainReader(Report& report) : report_(report) {}

  /// The layers of one file, those that it extends first.
  std::vector<Table> file(const fs::path& path, Origin::Kind kind, const Origin& asked_by) {
    std::error_code unknown;  // links in a circle, a part that is no folder: reading it will say so
    const fs::path identity = fs::weakly_canonical(path, unknown);
    if (std::find(open_.begin(), open_.end(), identity) != open_.end()) {
      report_.problems.push_back({asked_by, format("`extends` goes round in a circle: {}", circle(identity, path))});
      return {};
    }
    std::optional<std::string> text = read(path, asked_by);
    if (!text) {
      return {};
    }
    std::optional<Table> table = parse_toml(*text, path.string(), kind, report_);
    if (!table) {
      return {};
    }
    open_.push_back(identity);
    names_.push_back(path.string());
    std::vector<Table> layers = with_bases(std::move(*table), path.parent_path());
    open_.pop_back();
    names_.pop_back();
    return layers;
  }

  /// `table` without its `extends`, on top of what that names: one file or several, of which later ones win.
  std::vector<Table> with_bases(Table table, const fs::path& folder) {
    std::vector<Table> layers;
    if (const Node* extends = table.find("extends"); extends && !extends->is_null()) {
      const Array alone{*extends};
      for (const Node& base : extends->array() != nullptr ? *extends->array() : alone) {
        add_base(base, base.origin.file.empty() ? extends->origin : base.origin, folder, layers);
      }
    }
    table.erase("extends");
    layers.push_back(std::move(table));
    return layers;
  }

 private:
  void add_base(const Node& base, const Origin& origin, const fs::path& folder, std::vector<Table>& layers) {
    const std::string* const path = std::get_if<std::string>(&base.value);
    if (path == nullptr) {
      report_.problems.push_back({origin, format("extends ({}) is not a string; it names one TOML file, or a list of them", brief(base))});
      return;
    }
    for (Table& layer : file((folder / *path).lexically_normal(), Origin::Kind::preset, origin)) {
      layers.push_back(std::move(layer));
    }
  }

  /// Where a fault of a whole file stands: at the `extends` that named it, or at the file itself.
  static Origin top_or(const Origin& asked_by, const fs::path& path) {
    return asked_by.kind == Origin::Kind::fallback ? Origin{Origin::Kind::toml, path.string(), 0, 0, ""} : asked_by;
  }

  std::optional<std::string> read(const fs::path& path, const Origin& asked_by) {
    std::error_code ignored;
    if (fs::status(path, ignored).type() == fs::file_type::not_found) {
      const bool top = asked_by.kind == Origin::Kind::fallback;
      report_.problems.push_back(
          {top_or(asked_by, path),
           top ? "file not found" : format("extends: file not found: {} (paths are relative to the file that extends)", path)});
      return std::nullopt;
    }
    if (fs::is_directory(path, ignored)) {
      report_.problems.push_back({top_or(asked_by, path), format("{} is a folder; name the TOML file in it", path)});
      return std::nullopt;
    }
    if (const std::string fault = unlike_a_job(path); !fault.empty()) {
      report_.problems.push_back({top_or(asked_by, path), format("{} {}; name a TOML file", path, fault)});
      return std::nullopt;
    }
    try {
      return read_file(path);
    } catch (const Error& error) {
      report_.problems.push_back({Origin{Origin::Kind::toml, path.string(), 0, 0, ""}, error.what()});
      return std::nullopt;
    }
  }

  std::string circle(const fs::path& identity, const fs::path& path) const {
    std::string out;
    for (std::size_t i = 0; i < open_.size(); ++i) {
      if (!out.empty() || open_[i] == identity) {
        out += names_[i] + " \u2192 ";
      }
    }
    return out + path.string();
  }

  Report& report_;
  std::vector<fs::path> open_;
  std::vector<std::string> names_;
};

}  // namespace

std::vector<Table> read_layers(const Request& request, Report& report) {
  ChainReader reader(report);
  std::vector<Table> layers;
  if (!request.job.empty()) {
    layers = reader.file(request.job, Origin::Kind::toml, {});
  }
  if (request.recipe && request.recipe->table()) {
    for (Table& layer : reader.with_bases(*request.recipe->table(), fs::path(request.recipe->origin.file).parent_path())) {
      layers.push_back(std::move(layer));
    }
  } else if (request.recipe) {
    report.problems.push_back({request.recipe->origin, "a recipe must return a table of settings"});
  }
  return layers;
}

}  // namespace kf::config
