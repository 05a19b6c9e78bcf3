#include "config/load/paths.h"

#include <algorithm>
#include <array>
#include <set>
#include <string>
#include <vector>

#include "core/text.h"

namespace kf::config {
namespace {

struct PathKey {
  const char* key;
  bool pattern;  // may be a glob, a list or a range
};
constexpr std::array<PathKey, 7> kPaths{{{"data.dataset_path", true},
                                         {"data.tokenizer_path", false},
                                         {"eval.dataset_path", true},
                                         {"checkpoint.init_from", false},
                                         {"checkpoint.load_path", false},
                                         {"adapter.path", false},
                                         {"model.preset", false}}};
constexpr std::array<const char*, 2> kLists{"data.datasets", "eval.datasets"};  // of tables with `path`

/// Whether anything of that name is there. Of a pattern: something that matches, or for ranges {0..9} the folder in front.
bool is_there(const fs::path& path, bool pattern) {
  std::error_code error;
  const std::string text = path.string();
  const std::size_t wild = text.find_first_of("*?[{");
  if (fs::exists(path, error) || !pattern || wild == std::string::npos) {
    return fs::exists(path, error);
  }
  const std::size_t slash = text.rfind('/', wild);
  const fs::path root = slash == std::string::npos ? fs::path(".") : fs::path(text.substr(0, slash + 1));
  if (!fs::is_directory(root, error)) {
    return false;
  }
  const std::string rest = slash == std::string::npos ? text : text.substr(slash + 1);
  try {
    return rest.find("..") != std::string::npos || !glob(root, rest).empty();
  } catch (const std::exception&) {
    return true;  // who reads it says what is wrong with it
  }
}

bool is_same(const fs::path& a, const fs::path& b) {
  std::error_code error;
  const bool same = fs::equivalent(a, b, error);
  return !error && same;
}

/// "section.name" of a tree; null where it is not given.
Node* find_in(Table& tree, const std::string& key) {
  const std::size_t dot = key.find('.');
  Node* const section = tree.find(key.substr(0, dot));
  return section == nullptr || section->table() == nullptr ? nullptr : section->table()->find(key.substr(dot + 1));
}

class Settler {
 public:
  explicit Settler(Report& report) : report_(report) {}

  void settle(const std::string& key, Node& node, bool pattern) {
    auto* const text = std::get_if<std::string>(&node.value);
    const Origin& origin = node.origin;
    const bool from_file = (origin.kind == Origin::Kind::toml || origin.kind == Origin::Kind::recipe) && !origin.file.empty();
    if (text == nullptr || text->empty() || !from_file || fs::path(*text).is_absolute()) {
      return;
    }
    const fs::path folder = fs::path(origin.file).parent_path();
    const fs::path beside = (folder / *text).lexically_normal();
    if (folder.empty() || is_same(folder, ".") || !is_there(beside, pattern)) {
      return;
    }
    if (!is_there(*text, pattern)) {
      *text = beside.string();
    } else if (!is_same(*text, beside)) {
      report_.warnings.push_back(format("{} = {} is below the working folder and beside {}, too: the one below the working folder is taken",
                                        key, kf::quoted(*text), origin.file));
    }
  }

 private:
  Report& report_;
};

}  // namespace

void settle_paths(Table& merged, Report& report) {
  Settler settler(report);
  for (const auto& [key, pattern] : kPaths) {
    if (Node* const node = find_in(merged, key)) {
      settler.settle(key, *node, pattern);
    }
  }
  for (const char* const list : kLists) {
    Node* const node = find_in(merged, list);
    if (node == nullptr || node->array() == nullptr) {
      continue;
    }
    for (std::size_t i = 0; i < node->array()->size(); ++i) {
      Table* const source = (*node->array())[i].table();
      if (Node* const path = source == nullptr ? nullptr : source->find("path")) {
        settler.settle(format("{}[{}].path", list, i), *path, true);
      }
    }
  }
}

}  // namespace kf::config
