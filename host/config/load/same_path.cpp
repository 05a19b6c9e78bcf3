#include "config/load/same_path.h"

#include <algorithm>
#include <array>
#include <string>

#include "core/hub_name.h"
#include "core/plain_file.h"

namespace kf::config {
namespace {

enum class Names { none, models, words };  // of the hub that a key takes beside paths; words: also of one word

struct PathKey {
  const char* key;
  Names names;
};
constexpr std::array<PathKey, 5> kPaths{{{"data.dataset_path", Names::none},
                                         {"data.tokenizer_path", Names::words},
                                         {"data.chat_template", Names::none},
                                         {"eval.dataset_path", Names::none},
                                         {"checkpoint.init_from", Names::models}}};

std::string* text_of(Node* node) { return node != nullptr ? std::get_if<std::string>(&node->value) : nullptr; }
const std::string* text_of(const Node* node) { return node != nullptr ? std::get_if<std::string>(&node->value) : nullptr; }

/// What a path means: absolute, links followed as far as there are files, the rest (patterns, what is gone) as written without . and ..
fs::path meaning(const fs::path& folder, const std::string& text) {
  const fs::path whole = folder / text;
  std::error_code error;
  fs::path real = fs::weakly_canonical(whole, error);
  real = error ? whole.lexically_normal() : real;
  return real.has_filename() ? real : real.parent_path();  // data/ is data
}

/// Whether `text` is no path: empty, or the name of something else.
bool is_name(const fs::path& folder, const std::string& text, Names names) {
  return text.empty() || text.starts_with("lua:") || text == "tokenizer" || text.starts_with("tokenizer:") ||
         (names != Names::none && !path_exists(folder / text) && hub_name(text, names == Names::words).has_value());
}

struct Folders {
  fs::path before;
  fs::path now;

  bool same(const std::string& then, const std::string& text, Names names) const {
    return then == text || (!is_name(before, then, names) && !is_name(now, text, names) && meaning(before, then) == meaning(now, text));
  }
};

void respell(Node* before, const Node* now, Names names, const Folders& folders) {
  std::string* const then = text_of(before);
  const std::string* const text = text_of(now);
  if (then != nullptr && text != nullptr && folders.same(*then, *text, names)) {
    *then = *text;
  }
}

/// What a source of a mixture is called (data/source/train_data.cpp).
std::string called(const Table& source) {
  for (const char* key : {"name", "dataset", "path"}) {
    if (const std::string* const text = text_of(source.find(key)); text != nullptr && !text->empty()) {
      return *text;
    }
  }
  return {};
}

void respell_list(Node* before, const Node* now, bool called_by_path, const Folders& folders) {
  Array* const then = before != nullptr ? before->array() : nullptr;
  const Array* const list = now != nullptr ? now->array() : nullptr;
  for (std::size_t i = 0; then != nullptr && list != nullptr && i < std::min(then->size(), list->size()); ++i) {
    Table* const old = (*then)[i].table();
    const Table* const source = (*list)[i].table();
    if (old == nullptr || source == nullptr) {
      continue;
    }
    if (called_by_path) {
      if (called(*old) != called(*source)) {
        continue;
      }
      if (const Node* const name = source->find("name")) {
        (*old)["name"] = *name;
      }
    }
    respell(old->find("path"), source->find("path"), Names::none, folders);
  }
}

}  // namespace

void respell_paths(Table& before, const fs::path& folder, const Table& now) {
  std::error_code error;
  const fs::path here = fs::current_path(error);
  const Folders folders{folder.empty() ? here : folder, here};
  for (const auto& [key, names] : kPaths) {
    respell(before.find(key), now.find(key), names, folders);
  }
  respell_list(before.find("data.datasets"), now.find("data.datasets"), true, folders);
  respell_list(before.find("eval.datasets"), now.find("eval.datasets"), false, folders);
}

}  // namespace kf::config
