#include "run/code_record.h"

#include <algorithm>
#include <set>

#include "config/plan/resume_class.h"
#include "config/schema/schema.h"

namespace kf {
namespace {

using config::Node;
using config::Table;

std::string text_at(const Node& node, const char* key) {
  const Node* const value = node.table() != nullptr ? node.table()->find(key) : nullptr;
  const auto* const text = value != nullptr ? std::get_if<std::string>(&value->value) : nullptr;
  return text != nullptr ? *text : "";
}

/// Every text in `node`: names of parts are among them.
void collect_texts(const Node& node, std::set<std::string>& out) {
  if (const auto* const text = std::get_if<std::string>(&node.value)) {
    out.insert(*text);
  } else if (node.array() != nullptr) {
    for (const Node& item : *node.array()) {
      collect_texts(item, out);
    }
  } else if (node.table() != nullptr) {
    for (const auto& [key, value] : *node.table()) {
      collect_texts(value, out);
    }
  }
}

}  // namespace

bool code_makes_identity(const config::Config& config, const config::Catalog& catalog) {
  std::set<std::string> texts;
  for (const config::Row& row : config::rows()) {
    collect_texts(row.get(config), texts);
  }
  for (const auto& [kind, parts] : catalog) {
    for (const config::PartInfo& part : parts) {
      const bool own = part.origin != "native" && texts.contains(part.name);
      if (own && config::resume_class(kind + "." + part.name) == config::ResumeClass::identity) {
        return true;
      }
    }
  }
  return false;
}

Node code_digests(const std::vector<CodeFile>& code) {
  Table files;
  for (const CodeFile& file : code) {
    Table digests;
    digests["functions"] = Node(file.functions);
    digests["rest"] = Node(file.rest);
    files[file.name] = Node(std::move(digests));
  }
  return Node(std::move(files));
}

std::vector<CodeChange> code_changes(const Node& before, const std::vector<CodeFile>& now) {
  std::vector<CodeChange> out;
  if (before.table() == nullptr || before.table()->empty()) {
    return out;
  }
  for (const CodeFile& file : now) {
    const Node* const old = before.table()->find(file.name);
    const bool script = &file == &now.front();
    if (old == nullptr) {
      out.push_back({file.path.string(), "it is new", false});
    } else if (text_at(*old, "functions") != file.functions) {
      out.push_back({file.path.string(), "its functions have changed", false});
    } else if (text_at(*old, "rest") != file.rest) {
      out.push_back({file.path.string(), "it has changed outside of its functions", script});
    }
  }
  for (const Table::Entry& entry : *before.table()) {
    const std::string& name = entry.first;
    if (std::none_of(now.begin(), now.end(), [&](const CodeFile& file) { return file.name == name; })) {
      out.push_back({name, "it is gone", false});
    }
  }
  return out;
}

}  // namespace kf
