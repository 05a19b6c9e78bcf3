#include "data/cache/key.h"

#include "core/text.h"
#include "data/cache/hash.h"

namespace kf::cache {
namespace {

std::string size_text(std::int64_t size) { return grouped(size) + (size == 1 ? " byte" : " bytes"); }

void source_changes(const std::vector<KeySource>& before, const std::vector<KeySource>& now, std::vector<std::string>& out) {
  std::map<std::string, const KeySource*> earlier;
  for (const KeySource& source : before) {
    earlier[source.name] = &source;
  }
  bool names_differ = before.size() != now.size();
  for (std::size_t i = 0; i < now.size(); ++i) {
    const auto found = earlier.find(now[i].name);
    if (found == earlier.end()) {
      out.push_back(now[i].name + " is new");
      names_differ = true;
      continue;
    }
    const KeySource& old = *found->second;
    if (old.hash != now[i].hash) {
      out.push_back(old.size == now[i].size ? format("the content of {} (still {})", now[i].name, size_text(old.size))
                                            : format("{} ({} before, {} now)", now[i].name, size_text(old.size), size_text(now[i].size)));
    } else if (old.kind != now[i].kind) {
      out.push_back(format("{} (read as {} before, as {} now)", now[i].name, old.kind, now[i].kind));
    }
    names_differ = names_differ || before[i].name != now[i].name;
    earlier.erase(found);
  }
  for (const auto& [name, source] : earlier) {
    out.push_back(name + " is gone");
  }
  if (names_differ && out.empty()) {
    out.emplace_back("the order of the files");
  }
}

}  // namespace

std::string key_of(const KeyInputs& parts) {
  // Lengths in front of what may hold any character: no two lists of parts give the same text.
  std::string text = format("kf-host token cache {}\n", kFormat);
  const auto add = [&](const std::string& word) { text += format("{}:{}\n", word.size(), word); };
  for (const KeySource& source : parts.sources) {
    add(source.kind);
    add(source.hash);
  }
  text += "tokenizer\n";
  add(parts.tokenizer);
  for (const auto& [name, value] : parts.options) {
    add(name);
    add(value);
  }
  return hash_of(text);
}

std::vector<std::string> changes(const KeyInputs& before, const KeyInputs& now) {
  std::vector<std::string> out;
  source_changes(before.sources, now.sources, out);
  if (before.tokenizer != now.tokenizer) {
    out.push_back(before.tokenizer_description == now.tokenizer_description
                      ? format("the content of the tokenizer ({})", now.tokenizer_description)
                      : format("the tokenizer ({} before, {} now)", before.tokenizer_description, now.tokenizer_description));
  }
  for (const auto& [name, value] : now.options) {
    const auto found = before.options.find(name);
    const std::string old = found == before.options.end() ? "unset" : found->second;
    if (old != value) {
      out.push_back(format("{} ({} before, {} now)", name, kf::quoted(old), kf::quoted(value)));
    }
  }
  for (const auto& [name, value] : before.options) {
    if (now.options.count(name) == 0) {
      out.push_back(format("{} ({} before, unset now)", name, kf::quoted(value)));
    }
  }
  return out;
}

}  // namespace kf::cache
