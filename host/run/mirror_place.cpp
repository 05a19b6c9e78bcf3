#include "run/mirror_place.h"

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <optional>

#include "config/tree/json.h"
#include "core/error.h"
#include "core/plain_file.h"
#include "run/run_record.h"

namespace kf {
namespace {

constexpr const char* kFile = "mirror.json";
constexpr std::uint64_t kMostBytes = std::uint64_t{1} << 20;

struct Owner {
  std::string id, folder;
};

fs::path whole_path(const fs::path& dir) {
  const fs::path plain = fs::absolute(dir).lexically_normal();
  return plain.has_filename() ? plain : plain.parent_path();
}

std::string text_at(const config::Table& table, const char* key) {
  const config::Node* const node = table.find(key);
  const auto* const text = node != nullptr ? std::get_if<std::string>(&node->value) : nullptr;
  return text != nullptr ? *text : "";
}

/// Throws Code::other for a damaged file.
std::optional<Owner> owner_of(const fs::path& mirror) {
  const fs::path path = mirror / kFile;
  if (!path_exists(path)) {
    return std::nullopt;
  }
  const config::Node root = config::parse_json(read_regular_file(path, kMostBytes), path.string());
  KF_CHECK(root.table() != nullptr, Code::other, "{} is no table", path);
  return Owner{text_at(*root.table(), "id"), text_at(*root.table(), "folder")};
}

std::string own_id(const config::Config& config, const config::Plan& plan) {
  return config.run.id.empty() ? recorded_id(plan.dir) : config.run.id;
}

/// Whether `run_dir` is a copy of the owner's folder, which is still there: copies have the same id.
bool is_copy(const Owner& owner, const std::string& id, const fs::path& run_dir) {
  std::error_code none;
  return !id.empty() && owner.id == id && path_exists(owner.folder) && !fs::equivalent(owner.folder, run_dir, none) &&
         recorded_id(owner.folder) == id;
}

bool is_own(const Owner& owner, const std::string& id, const fs::path& run_dir) {
  return id.empty() ? owner.folder == whole_path(run_dir).string() : owner.id == id && !is_copy(owner, id, run_dir);
}

bool holds_own(const fs::path& place, const std::string& id, const fs::path& run_dir) {
  try {
    const std::optional<Owner> owner = owner_of(place);
    return owner && is_own(*owner, id, run_dir);
  } catch (const Error&) {  // a damaged one is told of where it is in the way
    return false;
  }
}

bool holds_copies(const fs::path& mirror) {
  std::error_code none;
  return fs::is_directory(mirror, none) &&
         std::any_of(fs::directory_iterator(mirror), fs::directory_iterator(), [](const fs::directory_entry& entry) {
           return !entry.path().filename().string().starts_with(".") && path_exists(entry.path() / "state.json");
         });
}

}  // namespace

fs::path mirror_folder(const config::Config& config, const config::Plan& plan) {
  if (config.checkpoint.mirror.empty()) {
    return {};
  }
  const fs::path mirror = config.checkpoint.mirror, whole = whole_path(plan.dir);
  const fs::path below = whole.lexically_relative(fs::current_path());
  const bool inside = !below.empty() && *below.begin() != ".." && below != ".";
  fs::path usual = (mirror / (inside ? below : whole.relative_path())).lexically_normal();
  const std::string id = own_id(config, plan);
  if (holds_own(usual, id, plan.dir)) {
    return usual;
  }
  for (fs::path ending = whole.relative_path(); !ending.empty();) {
    if (fs::path place = (mirror / ending).lexically_normal(); holds_own(place, id, plan.dir)) {
      return place;
    }
    ending = std::next(ending.begin()) == ending.end() ? fs::path() : ending.lexically_relative(*ending.begin());
  }
  return usual;
}

std::string mirrored_id(const fs::path& mirror) {
  const std::optional<Owner> owner = owner_of(mirror);
  return owner ? owner->id : "";
}

void check_mirror_owner(const fs::path& mirror, const config::Config& config, const config::Plan& plan) {
  std::optional<Owner> owner;
  try {
    owner = owner_of(mirror);
  } catch (const Error& e) {
    fail(Code::config, "checkpoint.mirror: {}; remove that file if the copies beside it are of this run", e.what());
  }
  const std::string id = own_id(config, plan);
  const bool same_folder = owner && owner->folder == whole_path(plan.dir).string();
  // Earlier versions left no such file.
  if (!owner || is_own(*owner, id, plan.dir) || (config.run.fresh && same_folder) || !holds_copies(mirror)) {
    return;
  }
  KF_CHECK(
      !is_copy(*owner, id, plan.dir), Code::config,
      "checkpoint.mirror: the checkpoints in {} are those of {}, which {} is a copy of, and both would write there: give the copy another "
      "run.name and run.id, or another checkpoint.mirror",
      mirror, owner->folder, plan.dir);
  fail(
      Code::config,
      "checkpoint.mirror: the copies in {} are of another run, {} in {}: give this one another run.name or checkpoint.mirror, or move them "
      "away{}",
      mirror, owner->id, owner->folder,
      id.empty() ? format("; where it is that run and its folder is lost or has moved, run.id = \"{}\" goes on with them", owner->id) : "");
}

void sign_mirror(const fs::path& mirror, const std::string& id, const fs::path& run_dir) {
  remove_temporaries(mirror, {kFile});
  config::Table table;
  table["id"] = config::Node(id);
  table["folder"] = config::Node(whole_path(run_dir).string());
  write_file_atomic(mirror / kFile, config::to_json(config::Node(std::move(table)), config::JsonStyle::plain, 1) + "\n");
}

}  // namespace kf
