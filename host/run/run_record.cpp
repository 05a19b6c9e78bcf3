#include "run/run_record.h"

#include <algorithm>
#include <array>
#include <ctime>
#include <map>
#include <random>
#include <set>

#include "build_info.h"
#include "checkpoint/files/folder.h"
#include "config/huggingface/huggingface.h"
#include "config/tree/json.h"
#include "core/error.h"
#include "core/log.h"
#include "core/plain_file.h"
#include "data/hub/model.h"
#include "data/tokenizer/tokenizer_files.h"
#include "run/run_lock.h"
#include "run/start_record.h"

namespace kf {
namespace {

using config::Array;
using config::Node;
using config::Table;

constexpr const char* kFile = "run.json";
constexpr const char* kCode = "code";
constexpr const char* kReloads = "reloads";
constexpr const char* kTokenizer = "tokenizer";
constexpr const char* kTemplate = "chat_template";
constexpr const char* kSource = "source";
constexpr const char* kJobs = "jobs";
constexpr std::uint64_t kMostRecord = std::uint64_t{1} << 28;
constexpr std::uint64_t kMostTokenizer = std::uint64_t{1} << 28;

std::string text_at(const Table& table, const char* key) {
  const Node* const node = table.find(key);
  const auto* const text = node != nullptr ? std::get_if<std::string>(&node->value) : nullptr;
  return text != nullptr ? *text : "";
}

std::string time_text(const char* pattern) {
  const std::time_t now = std::time(nullptr);
  std::tm parts{};
  ::gmtime_r(&now, &parts);
  std::array<char, 64> text{};
  std::strftime(text.data(), text.size(), pattern, &parts);  // digits only: no locale changes them
  return text.data();
}

std::string new_id() {
  std::random_device random;
  return time_text("%Y%m%d-%H%M%S-") + format("{}", 10000000 + random() % 90000000);
}

Node strings(const std::vector<std::string>& words) {
  Array out;
  for (const std::string& word : words) {
    out.emplace_back(is_utf8(word) ? word : std::string("(not UTF-8)"));
  }
  return Node(std::move(out));
}

/// Files of all nodes of a job's layers: the job and what it extends.
void collect_files(const Node& node, std::set<std::string>& out) {
  const bool file = node.origin.kind == config::Origin::Kind::toml || node.origin.kind == config::Origin::Kind::preset;
  if (file && unlike_a_file(node.origin.file).empty()) {
    out.insert(node.origin.file);
  }
  if (node.table() != nullptr) {
    for (const auto& [key, value] : *node.table()) {
      collect_files(value, out);
    }
  }
}

/// Absolute path to content, of everything that code/ is to hold.
std::map<fs::path, std::string> sources_of(const RunStart& start) {
  std::map<fs::path, std::string> out;
  for (const CodeFile& file : start.code) {
    out[fs::absolute(file.path).lexically_normal()] = file.text;
  }
  std::set<std::string> files;
  for (const Table& layer : start.loaded.layers) {
    for (const auto& [key, value] : layer) {
      collect_files(value, files);
    }
  }
  if (unlike_a_file(start.job).empty()) {
    files.insert(start.job.string());
  }
  for (const std::string& file : files) {
    out.emplace(fs::absolute(file).lexically_normal(), read_file(file));
  }
  return out;
}

/// The longest folder that all of them lie below: relative paths between them (`extends`, `require`) then hold below code/, too.
fs::path common_folder(const std::map<fs::path, std::string>& files) {
  fs::path common = files.begin()->first.parent_path();
  for (const auto& [path, text] : files) {
    while (*path.lexically_relative(common).begin() == "..") {
      common = common.parent_path();
    }
  }
  return common;
}

bool holds(const fs::path& folder, const std::map<fs::path, std::string>& files) {
  std::error_code error;
  std::size_t found = 0;
  for (fs::recursive_directory_iterator it(folder, error), end; !error && it != end; it.increment(error)) {
    found += it->is_regular_file(error) ? 1 : 0;
  }
  return !error && found == files.size() && std::all_of(files.begin(), files.end(), [&](const auto& file) {
    return unlike_a_file(folder / file.first).empty() && read_file(folder / file.first) == file.second;
  });
}

/// Puts `files` (relative path to content) into `folder` at once; an earlier folder that is not the same gets a number.
void put_folder(const fs::path& folder, const std::map<fs::path, std::string>& files) {
  if (files.empty() || holds(folder, files)) {
    return;
  }
  PendingFolder pending(folder);
  for (const auto& [name, text] : files) {
    fs::create_directories((pending.path() / name).parent_path());
    write_file_atomic(pending.path() / name, text);
  }
  if (fs::exists(fs::symlink_status(folder))) {
    const fs::path aside = free_name(folder);
    fs::rename(folder, aside);
    log::info("{} is not what the run was started with; that stays in {}", folder, aside);
  }
  pending.commit();
}

/// By their paths below `folder`.
std::map<fs::path, std::string> below(const fs::path& folder, const std::map<fs::path, std::string>& files) {
  std::map<fs::path, std::string> out;
  for (const auto& [path, text] : files) {
    out[path.lexically_relative(folder)] = text;
  }
  return out;
}

/// Copies the code; returns where the script and what it asks for lie below the run's folder, by CodeFile::asked.
Table put_code(const fs::path& dir, const RunStart& start) {
  const std::map<fs::path, std::string> sources = sources_of(start);
  if (sources.empty()) {
    return {};
  }
  const fs::path common = common_folder(sources);
  put_folder(dir / kCode, below(common, sources));
  Table places;
  for (const CodeFile& file : start.code) {
    places[file.asked] = Node((fs::path(kCode) / fs::absolute(file.path).lexically_normal().lexically_relative(common)).string());
  }
  return places;
}

/// The files of the tokenizer at `given`, with what config.json says beside them.
std::map<fs::path, std::string> copies_of(const fs::path& given) {
  std::map<fs::path, std::string> out;
  for (const fs::path& path : tokenizer_files(given)) {
    if (fs::file_size(path) <= kMostTokenizer) {
      out[path.filename()] = read_file(path);
    }
  }
  return out;
}

/// Copies what data.tokenizer_path names; returns the copy's path below the run's folder, "" without one.
std::string put_tokenizer(const fs::path& dir, const std::string& name) {
  const std::string given = hub::locate(name, hub::ModelFiles::tokenizer).string();  // of a name of the hub, what was fetched
  const std::map<fs::path, std::string> files = given.empty() ? std::map<fs::path, std::string>() : copies_of(given);
  if (files.empty()) {
    return {};
  }
  put_folder(dir / kTokenizer, files);
  std::error_code ignored;
  return fs::is_directory(given, ignored) ? kTokenizer : (fs::path(kTokenizer) / fs::path(given).filename()).string();
}

/// The same for a data.chat_template that is a file.
std::string put_template(const fs::path& dir, const std::string& given) {
  if (given.empty() || given == "tokenizer" || given.starts_with("tokenizer:") || !unlike_a_file(given).empty()) {
    return {};
  }
  const fs::path name = fs::path(given).filename();
  put_folder(dir / kTemplate, {{name, read_file(given)}});
  return (fs::path(kTemplate) / name).string();
}

/// Copies what a folder of Hugging Face, from which the model comes, says of it: an export says it again. "" without one.
std::string put_source(const fs::path& dir, const config::Config& config) {
  const fs::path folder = model_source(config);
  const std::map<fs::path, std::string> files = folder.empty() ? std::map<fs::path, std::string>() : copies_of(folder);
  if (files.empty()) {
    return {};
  }
  put_folder(dir / kSource, files);
  return kSource;
}

/// run.json of an earlier start; nothing where there is none, or it is damaged (the log says so).
std::optional<Table> read_record(const fs::path& dir) {
  const fs::path path = dir / kFile;
  if (!path_exists(path)) {
    return std::nullopt;
  }
  try {
    Node root = config::parse_json(read_regular_file(path, kMostRecord), path.string());
    KF_CHECK(root.table() != nullptr, Code::other, "{} is no table", path);
    return std::move(*root.table());
  } catch (const Error& error) {
    log::warn("{}; a new one is begun", error.what());
    return std::nullopt;
  }
}

}  // namespace

fs::path model_source(const config::Config& config) {
  const std::string& name = config.model.preset;
  fs::path preset = name.find('/') == std::string::npos ? fs::path(name) : hub::locate(name, hub::ModelFiles::tokenizer);
  if (config::is_huggingface_folder(preset)) {
    return preset;
  }
  const std::string weights = config.checkpoint.init_from.value_or("");
  if (weights.empty()) {
    return {};
  }
  fs::path folder = hub::locate(weights, hub::ModelFiles::tokenizer);
  if (config::is_huggingface_folder(folder)) {
    return folder;
  }
  const std::optional<fs::path> run = path_exists(folder) ? run_folder_of(folder) : std::nullopt;
  return run ? recorded_source(*run) : fs::path();
}

Node program_versions() {
  Table out;
  out["version"] = Node(std::string(build::kVersion));
  out["commit"] = Node(std::string(build::kGit));
  out["torch"] = Node(std::string(build::kTorch));
  return Node(std::move(out));
}

bool began_under(const fs::path& run_dir, const std::string& watch) {
  const std::optional<Table> record = watch.empty() ? std::nullopt : read_record(run_dir);
  const Node* const starts = record ? record->find("starts") : nullptr;
  if (starts == nullptr || starts->array() == nullptr || starts->array()->empty()) {
    return false;
  }
  const Table* const last = starts->array()->back().table();
  return last != nullptr && text_at(*last, "watch") == watch;
}

std::string utc_now() { return time_text("%Y-%m-%dT%H:%M:%SZ"); }

RunRecord::RunRecord(fs::path dir, const RunStart& start) : dir_(std::move(dir)), folder_(file_id(dir_)) {
  const std::optional<Table> earlier = start.fresh ? std::nullopt : read_record(dir_);
  const config::RunConfig& run = start.loaded.config.run;
  const std::string own = earlier ? text_at(*earlier, "id") : "", kept = own.empty() ? start.copied_id : own;
  id_ = !run.id.empty() ? run.id : kept.empty() ? new_id() : kept;
  table_["id"] = Node(id_);
  table_["name"] = Node(start.name);
  table_["tags"] = strings(run.tags);
  if (start.from_folder && earlier) {
    for (const char* key : {"job", "script", "arguments", "modules", "tokenizer", "chat_template", "source"}) {
      if (const Node* const value = earlier->find(key)) {
        table_[key] = *value;
      }
    }
  } else {
    copy_parts(start);
  }
  Array starts;
  if (const Node* const before = earlier ? earlier->find("starts") : nullptr; before != nullptr && before->array() != nullptr) {
    starts = *before->array();
  }
  starts.emplace_back(start_record(start));
  table_["starts"] = Node(std::move(starts));
  write();
}

void RunRecord::copy_parts(const RunStart& start) {
  table_["job"] = Node(start.job.string());
  Table code = put_code(dir_, start);
  if (!start.code.empty()) {
    table_["script"] = code[""];
    table_["arguments"] = strings(start.arguments);
    code.erase("");
    table_["modules"] = Node(std::move(code));
  }
  if (const std::string tokenizer = put_tokenizer(dir_, start.loaded.config.data.tokenizer_path); !tokenizer.empty()) {
    table_["tokenizer"] = Node(tokenizer);
  }
  if (const std::string chat = put_template(dir_, start.loaded.config.data.chat_template); !chat.empty()) {
    table_["chat_template"] = Node(chat);
  }
  if (const std::string source = put_source(dir_, start.loaded.config); !source.empty()) {
    table_["source"] = Node(source);
  }
}

void RunRecord::add(const std::string& key, config::Node value) {
  if (file_id(dir_) == folder_) {
    (*table_["starts"].array()->back().table())[key] = std::move(value);
    write();
  }
}

void RunRecord::end(const std::string& status, std::int64_t steps, const std::string& error) noexcept {
  try {
    if (file_id(dir_) != folder_) {
      return;
    }
    Table& start = *table_["starts"].array()->back().table();
    start["end"] = Node(utc_now());
    start["status"] = Node(status);
    start["steps"] = Node(steps);
    if (!error.empty()) {
      start["error"] = Node(is_utf8(error) ? error : std::string("(not UTF-8)"));
    }
    write();
  } catch (const std::exception& fault) {
    log::warn("{}", fault.what());
  }
}

void RunRecord::write() { write_file_atomic(dir_ / kFile, config::to_json(Node(table_), config::JsonStyle::plain, 1) + "\n"); }

void put_reloaded(const fs::path& dir, std::int64_t step, const std::vector<CodeFile>& code) {
  std::map<fs::path, std::string> files;
  for (const CodeFile& file : code) {
    files[fs::absolute(file.path).lexically_normal()] = file.text;
  }
  if (!files.empty()) {
    fs::create_directories(dir / kReloads);
    put_folder(dir / kReloads / format("step_{}", step), below(common_folder(files), files));
  }
}

void keep_earlier_job(const fs::path& dir, const std::string& job) {
  const fs::path file = dir / "job.toml";
  const std::optional<Table> record = read_record(dir);
  const Node* const starts = record ? record->find("starts") : nullptr;
  if (starts == nullptr || starts->array() == nullptr || starts->array()->empty() || !unlike_a_file(file).empty()) {
    return;
  }
  if (const std::string earlier = read_file(file); earlier != job) {
    fs::create_directories(dir / kJobs);
    write_file_atomic(dir / kJobs / format("{}.toml", starts->array()->size()), earlier);
  }
}

fs::path recorded_job(const fs::path& run_dir, std::size_t start, std::size_t starts) {
  for (std::size_t number = start; number < starts; ++number) {
    if (fs::path file = run_dir / kJobs / format("{}.toml", number); path_exists(file)) {
      return file;
    }
  }
  return run_dir / "job.toml";
}

bool is_run_folder(const fs::path& word) {
  std::error_code error;
  return fs::is_directory(word, error) && path_exists(word / "run.json") && path_exists(word / "job.toml");
}

std::optional<fs::path> run_folder_of(const fs::path& source) {
  fs::path folder = fs::absolute(source).lexically_normal();
  for (int up = 0; up < 3 && !folder.empty(); ++up) {
    if (path_exists(folder / kFile) && path_exists(folder / "job.toml")) {
      return source.is_absolute() ? folder : folder.lexically_proximate(fs::current_path());
    }
    folder = folder.has_filename() ? folder.parent_path() : folder.parent_path().parent_path();
  }
  return std::nullopt;
}

RecordedScript recorded_script(const fs::path& run_dir) {
  RecordedScript out;
  const std::optional<Table> record = read_record(run_dir);
  const std::string script = record ? text_at(*record, "script") : "";
  if (script.empty() || !unlike_a_file(run_dir / script).empty()) {
    return out;
  }
  out.path = run_dir / script;
  if (const Node* const words = record->find("arguments"); words != nullptr && words->array() != nullptr) {
    for (const Node& word : *words->array()) {
      const auto* const text = std::get_if<std::string>(&word.value);
      out.arguments.push_back(text != nullptr ? *text : "");
    }
  }
  if (const Node* const modules = record->find("modules"); modules != nullptr && modules->table() != nullptr) {
    for (const config::Table::Entry& entry : *modules->table()) {
      if (const auto* const path = std::get_if<std::string>(&entry.second.value)) {
        out.copies[entry.first] = run_dir / *path;
      }
    }
  }
  return out;
}

std::string recorded_id(const fs::path& run_dir) {
  const std::optional<Table> record = read_record(run_dir);
  return record ? text_at(*record, "id") : "";
}

std::string recorded_name(const fs::path& run_dir) {
  const std::optional<Table> record = read_record(run_dir);
  return record ? text_at(*record, "name") : "";
}

fs::path recorded_source(const fs::path& run_dir) {
  const std::optional<Table> record = read_record(run_dir);
  const std::string path = record ? text_at(*record, kSource) : "";
  return path.empty() || !path_exists(run_dir / path) ? fs::path() : run_dir / path;
}

fs::path recorded_copy(const fs::path& run_dir, const std::string& key) {
  const std::optional<Table> record = read_record(run_dir);
  const std::string path = record ? text_at(*record, key == "tokenizer_path" ? kTokenizer : kTemplate) : "";
  return path.empty() || !path_exists(run_dir / path) ? fs::path() : run_dir / path;
}

}  // namespace kf
