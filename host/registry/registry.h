#pragma once
// One registry per kind of part: name to factory, with doc, origin and the part's own fields.

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "config/schema/part.h"
#include "core/error.h"

namespace kf {

/// Named factories of one kind. Native and Lua parts are the same to callers.
template <class Factory>
class Registry {
 public:
  struct Entry {
    config::PartInfo info;
    Factory factory;
  };

  /// `kind` is the word in messages and in `kf-host registry`: "optimizer".
  explicit Registry(std::string kind) : kind_(std::move(kind)) {}

  /// Throws (Code::script: only scripts can collide) when the name is taken, and says by whom.
  void add(config::PartInfo info, Factory factory) {
    if (const Entry* taken = find(info.name)) {
      fail(Code::script, "{} '{}' is {}; give yours another name", kind_, info.name,
           taken->info.origin == "native" ? "built in" : "already registered by " + taken->info.origin);
    }
    entries_.push_back({std::move(info), std::move(factory)});
  }

  /// Throws Code::config with the nearest name and the list when there is none.
  const Entry& get(std::string_view name) const {
    if (const Entry* entry = find(name)) {
      return *entry;
    }
    std::vector<std::string> names;
    for (const Entry& entry : entries_) {
      names.push_back(entry.info.name);
    }
    const std::string near = nearest(name, names);
    fail(Code::config, "no {} '{}'{}; have: {}", kind_, name, near.empty() ? "" : "; did you mean '" + near + "'?", join(names, ", "));
  }

  const Entry* find(std::string_view name) const {
    for (const Entry& entry : entries_) {
      if (entry.info.name == name) {
        return &entry;
      }
    }
    return nullptr;
  }

  /// Forgets what a script registered; native parts stay.
  void remove_scripted() {
    std::erase_if(entries_, [](const Entry& entry) { return entry.info.origin != "native"; });
  }

  /// Forgets one part, whoever registered it; nothing happens when there is none.
  void remove(std::string_view name) {
    std::erase_if(entries_, [&](const Entry& entry) { return entry.info.name == name; });
  }

  const std::string& kind() const { return kind_; }
  const std::vector<Entry>& entries() const { return entries_; }
  std::vector<config::PartInfo> infos() const {
    std::vector<config::PartInfo> out;
    for (const Entry& entry : entries_) {
      out.push_back(entry.info);
    }
    return out;
  }

 private:
  std::string kind_;
  std::vector<Entry> entries_;
};

}  // namespace kf
