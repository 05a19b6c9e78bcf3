#include <chrono>
#include <ctime>
#include <iostream>

#include "app/command/data_commands.h"
#include "app/help/usage.h"
#include "app/line/option_list.h"
#include "config/tree/json.h"
#include "core/text.h"
#include "data/cache/cache.h"
#include "data/cache/inventory.h"

namespace kf {

using cache::CacheEntry;

namespace {

const OptionNames kNames{"kf-host data cache", {"--dir", "--unused-days", "--format"}, {"--dry-run"}, false};

std::string date_of(std::chrono::system_clock::time_point time) {
  const std::time_t seconds = std::chrono::system_clock::to_time_t(time);
  std::tm parts{};
  ::localtime_r(&seconds, &parts);
  char text[32];
  return {text, std::strftime(text, sizeof text, "%Y-%m-%d %H:%M", &parts)};
}

std::string size_text(std::int64_t bytes) { return human_bytes(static_cast<double>(bytes)); }

void print_entry(const CacheEntry& entry) {
  std::cout << entry.key << "  " << date_of(entry.used) << "  " << size_text(entry.bytes) << "  "
            << (entry.finished ? grouped(entry.tokens) + " tokens  " : "") << entry.from << (entry.in_use ? "  (in use)" : "") << "\n";
}

void print_json(const std::vector<CacheEntry>& entries, const std::string& list) {
  config::Array rows;
  std::int64_t bytes = 0;
  for (const CacheEntry& entry : entries) {
    config::Table row;
    row["key"] = config::Node(entry.key);
    row["folder"] = config::Node(entry.folder.string());
    row["bytes"] = config::Node(entry.bytes);
    row["tokens"] = config::Node(entry.tokens);
    row["used"] = config::Node(static_cast<std::int64_t>(std::chrono::system_clock::to_time_t(entry.used)));
    row["finished"] = config::Node(entry.finished);
    row["in_use"] = config::Node(entry.in_use);
    row["from"] = config::Node(entry.from);
    rows.emplace_back(std::move(row));
    bytes += entry.bytes;
  }
  config::Table out;
  out[list] = config::Node(std::move(rows));
  out["bytes"] = config::Node(bytes);
  std::cout << config::to_json(config::Node(std::move(out))) << "\n";
}

std::vector<CacheEntry> removed_of(const std::vector<CacheEntry>& entries, std::int64_t days, bool dry_run) {
  const auto before = std::chrono::system_clock::now() - std::chrono::hours(24 * days);
  std::vector<CacheEntry> out;
  for (const CacheEntry& entry : entries) {
    if (!entry.in_use && (days == 0 || entry.used <= before) && (dry_run || cache::remove_cache(entry))) {
      out.push_back(entry);
    }
  }
  return out;
}

}  // namespace

int data_cache(const Arguments& args) {
  const OptionList list = parse_options(args, kNames);
  KF_CHECK(list.words.size() <= 1, Code::config, "one of list and prune, got '{}' and '{}'\n{}", list.words[0], list.words[1],
           usage::kDataCache);
  const std::string word = list.words.empty() ? "list" : list.words[0];
  KF_CHECK(word == "list" || word == "prune", Code::config, "data cache has no command '{}'; have: list, prune", word);
  const bool prunes = word == "prune";
  KF_CHECK(prunes || !(list.has("--unused-days") || list.has("--dry-run")), Code::config, "--unused-days and --dry-run are words of prune");
  if (list.has("--format")) {
    check_word("--format", list.last("--format"), {"text", "json"});
  }
  const std::int64_t days =
      list.has("--unused-days") ? option_number<std::int64_t>("--unused-days", list.last("--unused-days"), 0, 100'000) : 30;
  const fs::path dir = cache::cache_folder(list.last("--dir"));
  std::error_code missing;
  KF_CHECK(fs::is_directory(dir, missing), Code::data, "{} is no folder: caches lie where data.cache_dir says; give --dir", dir);
  std::vector<CacheEntry> entries = cache::caches_in(dir);
  const bool dry_run = list.has("--dry-run");
  if (prunes) {
    entries = removed_of(entries, days, dry_run);
  }
  if (list.last("--format") == "json") {
    print_json(entries, prunes ? "removed" : "caches");
    return 0;
  }
  std::int64_t bytes = 0;
  for (const CacheEntry& entry : entries) {
    print_entry(entry);
    bytes += entry.bytes;
  }
  const std::string what =
      format("{} {}, {}", grouped(static_cast<std::int64_t>(entries.size())), entries.size() == 1 ? "cache" : "caches", size_text(bytes));
  std::cout << (!prunes ? what : (dry_run ? "would remove " : "removed ") + what) << " in " << dir.string() << "\n";
  return 0;
}

}  // namespace kf
