#include "checkpoint/state_file.h"

#include <algorithm>
#include <utility>

#include "config/tree/json.h"
#include "core/error.h"
#include "core/plain_file.h"

namespace kf {
namespace {

using config::JsonStyle;
using config::Node;
using config::Table;

constexpr std::int64_t kVersion = 2;
constexpr std::uint64_t kMostBytes = std::uint64_t{1} << 30;  // of a state file: what is larger is none

template <class Map>
Node table_of(const Map& map) {
  Table table;
  for (const auto& [key, value] : map) {
    table[key] = Node(value);
  }
  return Node(std::move(table));
}

Node to_node(const FileDigest& digest) {
  Table table;
  table["bytes"] = Node(static_cast<std::int64_t>(digest.bytes));
  table["crc32"] = Node(hex32(digest.crc32));
  return Node(std::move(table));
}

/// Reads typed values out of a table; a missing or mistyped one names the file.
class Fields {
 public:
  Fields(const Node& node, const fs::path& path, std::string where = {}) : path_(path), where_(std::move(where)) {
    KF_CHECK(node.table() != nullptr, Code::checkpoint, "{}: {} is no table", path_, where_.empty() ? "the content" : where_);
    table_ = node.table();
  }

  const Node& node(const std::string& key) const {
    const Node* const found = table_->find(key);
    KF_CHECK(found != nullptr, Code::checkpoint, "{}: '{}{}' is missing", path_, where_, key);
    return *found;
  }
  template <class T>
  T get(const std::string& key) const {
    const T* const value = std::get_if<T>(&node(key).value);
    KF_CHECK(value != nullptr, Code::checkpoint, "{}: '{}{}' has the wrong type", path_, where_, key);
    return *value;
  }
  Fields fields(const std::string& key) const { return Fields(node(key), path_, where_ + key + "."); }
  const Table& table() const { return *table_; }

 private:
  const fs::path& path_;
  std::string where_;
  const Table* table_ = nullptr;
};

template <class T>
std::map<std::string, T> read_map(const Fields& fields) {
  std::map<std::string, T> map;
  for (const auto& [key, value] : fields.table()) {
    map[key] = fields.get<T>(key);
  }
  return map;
}

/// Always as long, so that it can be cut off before it is known.
std::string first_line(std::string_view rest) { return "{\"crc32\": \"" + hex32(extend_crc32(0, rest.data(), rest.size())) + "\",\n"; }

/// The text as it was written, or an error: the checksum is looked at before anything else is believed.
std::string read_checked(const fs::path& path) {
  std::string text;
  try {
    text = read_regular_file(path, kMostBytes);
  } catch (const Error& e) {
    throw Error(Code::checkpoint, e.what());
  }
  const std::size_t length = first_line({}).size();
  KF_CHECK(text.size() > length && text.starts_with(first_line(std::string_view(text).substr(length))), Code::checkpoint,
           "{} is damaged: its checksum does not match", path);
  return text;
}

/// The values of a version 1, which had a place for each kind of them and kept three of the loop's inside of "course".
Table values_of_version_1(const Fields& fields) {
  Table values;
  for (const char* group : {kHooks, kParts}) {
    if (fields.table().find(group) != nullptr) {  // the earliest had no parts
      for (const auto& [name, value] : fields.fields(group).table()) {
        values[std::string(group) + "/" + name] = value;
      }
    }
  }
  for (const char* key : {kTrain, kCourse}) {
    if (const Node* const value = fields.table().find(key)) {
      values[key] = *value;
    }
  }
  Node* const course = values.find(kCourse);
  if (course == nullptr || course->table() == nullptr) {
    return values;
  }
  Table alone = *course->table();
  for (const char* key : {kEval, kWall, kStop}) {
    if (const Node* const value = alone.find(key)) {
      const Node own = *value;
      alone.erase(key);
      values[key] = own;
    }
  }
  values[kCourse] = Node(std::move(alone));
  return values;
}

/// What a checkpoint cannot do without: the weights and the optimizer's tensors, each in one file or by an index of many.
void check_listed(const std::map<std::string, FileDigest>& files, const fs::path& path) {
  for (const auto& [one, index] : {std::pair(kModelFile, kModelIndex), std::pair(kOptimizerFile, kOptimizerIndex)}) {
    KF_CHECK(files.count(one) + files.count(index) == 1, Code::checkpoint, "{} does not list {} or {}", path, one, index);
  }
  KF_CHECK(files.count(kJobFile) > 0, Code::checkpoint, "{} does not list {}", path, kJobFile);
}

}  // namespace

Node to_node(const std::map<std::string, FileDigest>& files) {
  Table table;
  for (const auto& [name, digest] : files) {
    table[name] = to_node(digest);
  }
  return Node(std::move(table));
}

std::map<std::string, FileDigest> digests_from(const Node& node, const fs::path& path) {
  const Fields fields(node, path, "files.");
  std::map<std::string, FileDigest> digests;
  for (const auto& [name, value] : fields.table()) {
    const Fields digest = fields.fields(name);
    digests[name] = {static_cast<std::uint64_t>(digest.get<std::int64_t>("bytes")), crc32_from(digest.get<std::string>("crc32"), path)};
  }
  return digests;
}

std::string to_text(const StateFile& content) {
  Table optimizer;
  optimizer["integers"] = table_of(content.optimizer_integers);
  optimizer["reals"] = table_of(content.optimizer_reals);
  Table table;
  table["version"] = Node(kVersion);
  table["step"] = Node(content.state.run.step);
  table["tokens"] = Node(content.state.run.tokens);
  table["skipped"] = Node(content.state.run.skipped);
  table["max_steps"] = Node(content.state.max_steps);
  table["finished"] = Node(content.state.finished);
  table["data_fingerprint"] = Node(content.state.data_fingerprint);
  table["files"] = to_node(content.files);
  table["optimizer"] = Node(std::move(optimizer));
  if (!content.left_out.names.empty()) {
    table["left_out"] = to_node(content.left_out);
  }
  table["values"] = Node(content.state.values);
  table["kernels"] = content.state.kernels;
  table["versions"] = content.state.versions;
  table["mesh"] = content.state.mesh;
  table["job"] = content.state.job;
  table["folder"] = Node(content.state.folder);
  table["code"] = content.state.code;
  table["cpu_rng"] = Node(content.cpu_rng);
  const std::string rest = config::to_json(Node(std::move(table)), JsonStyle::exact, 1).substr(2) + "\n";  // without "{\n"
  return first_line(rest) + rest;
}

StateFile read_state_file(const fs::path& checkpoint) {
  const fs::path path = checkpoint / kStateFile;
  const Node root = config::parse_json(read_checked(path), path.string(), JsonStyle::exact);
  const Fields fields(root, path);
  const auto version = fields.get<std::int64_t>("version");
  KF_CHECK(version >= 1 && version <= kVersion, Code::checkpoint, "{} has version {}; this program reads versions 1 to {}", path, version,
           kVersion);
  StateFile content;
  content.state.run.step = fields.get<std::int64_t>("step");
  content.state.run.tokens = fields.get<std::int64_t>("tokens");
  KF_CHECK(content.state.run.step >= 0 && content.state.run.tokens >= 0, Code::checkpoint, "{}: step {} and {} tokens cannot be", path,
           content.state.run.step, content.state.run.tokens);
  content.state.run.skipped = fields.table().find("skipped") != nullptr ? fields.get<std::int64_t>("skipped") : 0;    // earlier versions
  content.state.max_steps = fields.table().find("max_steps") != nullptr ? fields.get<std::int64_t>("max_steps") : 0;  // had neither
  content.state.finished = fields.get<bool>("finished");
  content.state.data_fingerprint = fields.get<std::string>("data_fingerprint");
  content.state.job = fields.node("job");
  content.state.folder = fields.table().find("folder") != nullptr ? fields.get<std::string>("folder") : "";  // earlier versions had none
  for (const auto& [key, into] : {std::pair("code", &content.state.code), std::pair("kernels", &content.state.kernels),
                                  std::pair("versions", &content.state.versions), std::pair("mesh", &content.state.mesh)}) {
    if (const Node* const found = fields.table().find(key)) {  // earlier versions had none
      *into = *found;
    }
  }
  content.state.values = version == 1 ? values_of_version_1(fields) : fields.fields("values").table();
  content.cpu_rng = fields.get<std::string>("cpu_rng");
  content.optimizer_integers = read_map<std::int64_t>(fields.fields("optimizer").fields("integers"));
  content.optimizer_reals = read_map<double>(fields.fields("optimizer").fields("reals"));
  content.files = digests_from(fields.node("files"), path);
  if (const Node* const left_out = fields.table().find("left_out")) {
    content.left_out = left_out_from(*left_out, path);
  }
  check_listed(content.files, path);
  return content;
}

StateFile read_state(const fs::path& checkpoint) {
  StateFile content = read_state_file(checkpoint);
  const FileDigest& expected = content.files.at(kJobFile);
  std::string& job = content.state.job_toml;
  job = read_regular_file(checkpoint / kJobFile, std::max<std::uint64_t>(expected.bytes, 1 << 20));
  const FileDigest digest{job.size(), extend_crc32(0, job.data(), job.size())};
  KF_CHECK(digest == expected, Code::checkpoint, "{} is damaged: its checksum does not match", checkpoint / kJobFile);
  return content;
}

std::string checkpoint_fault(const fs::path& checkpoint, const FileCheck& check) {
  try {
    std::error_code error;
    KF_CHECK(fs::is_directory(checkpoint, error), Code::checkpoint, "{} {}", checkpoint,
             path_exists(checkpoint) ? "is no folder" : "does not exist");
    check(checkpoint, read_state_file(checkpoint).files);
    return {};
  } catch (const std::exception& e) {
    return e.what();
  }
}

}  // namespace kf
