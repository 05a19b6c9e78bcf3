#include "checkpoint/export/earlier.h"

#include <optional>

#include "checkpoint/export/shards.h"
#include "checkpoint/files/durable_file.h"
#include "checkpoint/files/written_folder.h"
#include "config/tree/json.h"
#include "core/error.h"
#include "core/log.h"
#include "core/plain_file.h"

namespace kf {
namespace {

constexpr const char* kRecord = "files";

/// Name to checksum, as an export has written them down; nothing where it has not.
std::optional<std::map<std::string, std::string>> recorded_files(const fs::path& folder) {
  const auto metadata = shard_metadata(folder);
  if (!metadata || !metadata->contains(kRecord)) {
    return std::nullopt;
  }
  std::map<std::string, std::string> out;
  try {
    const config::Node node = config::parse_json(metadata->at(kRecord), folder.string());
    for (const auto& [name, sum] : node.table() != nullptr ? *node.table() : config::Table()) {
      const auto* const text = std::get_if<std::string>(&sum.value);
      out[name] = text != nullptr ? *text : "";
    }
  } catch (const Error&) {
    return std::nullopt;
  }
  return out;
}

/// A file stands in both places then; where the file system has no links to files, it is copied. Pipes and sockets, which belong to a
/// program that runs, are left.
void carry(const fs::path& from, const fs::path& to) {
  const fs::file_status status = fs::symlink_status(from);
  if (fs::is_symlink(status)) {
    fs::copy_symlink(from, to);
  } else if (fs::is_directory(status)) {
    fs::create_directory(to, from);
    for (const fs::directory_entry& entry : fs::directory_iterator(from)) {
      carry(entry.path(), to / entry.path().filename());
    }
  } else if (fs::is_regular_file(status)) {
    std::error_code error;
    fs::create_hard_link(from, to, error);
    if (error) {
      fs::copy_file(from, to);
    }
  }
}

}  // namespace

fs::path export_target(const fs::path& asked) {
  fs::path folder = folder_named(asked);
  KF_CHECK(
      folder.extension() != ".safetensors", Code::config,
      "{} has the name of a file, and an export is a folder; `kf-host checkpoint convert CHECKPOINT {}` writes a file of weights alone",
      asked, asked);
  std::error_code error;
  remove_abandoned(folder, WrittenFolder::kInside);
  const bool there = fs::exists(fs::symlink_status(folder, error));
  KF_CHECK(!there || (fs::is_directory(folder, error) && (fs::is_empty(folder, error) || shard_metadata(folder))), Code::config,
           "{} is there and is no export; name another folder, or remove it", folder);
  return folder;
}

std::map<std::string, std::string> record_of(const fs::path& folder) {
  config::Table files;
  std::map<std::string, std::string> sorted;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder)) {
    sorted[entry.path().filename().string()] = hex32(digest_of(entry.path()).crc32);
  }
  for (const auto& [name, sum] : sorted) {
    files[name] = config::Node(sum);
  }
  return {{kRecord, config::to_json(config::Node(std::move(files)))}};
}

void keep_others(const fs::path& earlier, const fs::path& folder) {
  if (!path_exists(earlier)) {
    return;
  }
  const auto record = recorded_files(earlier);
  const auto is_as_written = [&](const fs::path& file) {
    const auto known = record->find(file.filename().string());
    return known != record->end() && unlike_a_file(file).empty() && hex32(digest_of(file).crc32) == known->second;
  };
  for (const fs::directory_entry& entry : fs::directory_iterator(earlier)) {
    if (entry.path() == folder) {
      continue;  // it is written inside of the earlier one
    }
    const fs::path to = folder / entry.path().filename();
    const bool is_new = fs::exists(fs::symlink_status(to));
    if (is_shard(entry.path()) || (is_new && (!record || to.filename() == "config.json")) || (record && is_as_written(entry.path()))) {
      continue;
    }
    if (is_new) {
      log::warn("{} is not as an export wrote it, and stays", entry.path());
      fs::remove_all(to);
    }
    carry(entry.path(), to);
  }
  fs::permissions(folder, fs::status(earlier).permissions());
}

}  // namespace kf
