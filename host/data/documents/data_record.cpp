#include "data/documents/data_record.h"

#include <algorithm>
#include <map>

#include "core/digest.h"
#include "core/error.h"
#include "core/text.h"
#include "data/file/input_file.h"
#include "data/read/reader.h"

namespace kf {
namespace {

constexpr std::size_t kEdge = 65536;      // bytes of both ends
constexpr std::size_t kPlace = 4096;      // of each place in between
constexpr std::size_t kAllPlaces = 4096;  // of all files together
constexpr std::string_view kEvaluation = "evaluation";

struct Source {
  std::string hash;
  std::map<std::string, std::string> files;  // name -> hash
};

/// By name; what the loader adds has no hash and is its own name.
using Sources = std::map<std::string, Source>;

struct Parsed {
  Sources training;
  Sources evaluation;
  bool has_evaluation = false;
};

Parsed parse(const std::string& text) {
  Parsed out;
  Source* current = nullptr;
  for (const std::string& line : split(text, '\n')) {
    if (line == kEvaluation) {
      out.has_evaluation = true;
      current = nullptr;
    } else if (line.starts_with("  ")) {
      const std::size_t space = line.find(' ', 2);
      if (current != nullptr && space != std::string::npos) {
        current->files[line.substr(space + 1)] = line.substr(2, space - 2);
      }
    } else if (!line.empty()) {
      const std::size_t space = std::min(line.find(' '), line.size());
      const bool added = line.find('=') < space;  // "holdout=0.1"
      Sources& sources = out.has_evaluation ? out.evaluation : out.training;
      current = &sources[added ? line : line.substr(std::min(line.size(), space + 1))];
      current->hash = line.substr(0, space);
    }
  }
  return out;
}

/// "a.txt, b.txt (gone), c.txt (new) and 4 more"; "" where none differs, or where one side does not say. Sources of one hash may have other
/// names for the same files: a cache does not care.
std::string changed_files(const Source& before, const Source& after) {
  const bool renamed = before.hash == after.hash;
  std::vector<std::string> names;
  if (before.files.empty() || after.files.empty()) {
    return "";
  }
  for (const auto& [name, hash] : after.files) {
    const auto at = before.files.find(name);
    if (at == before.files.end()) {
      if (!renamed) {
        names.push_back(name + " (new)");
      }
    } else if (at->second != hash) {
      names.push_back(name);
    }
  }
  for (const auto& [name, hash] : before.files) {
    if (!renamed && !after.files.contains(name)) {
      names.push_back(name + " (gone)");
    }
  }
  constexpr std::size_t kShown = 5;
  const std::vector<std::string> shown(names.begin(), names.begin() + static_cast<std::ptrdiff_t>(std::min(kShown, names.size())));
  return join(shown, ", ") + (names.size() > kShown ? format(" and {} more", names.size() - kShown) : "");
}

struct Changes {
  std::vector<std::string> sources;
  std::vector<std::string> files;
};

Changes compare(const Sources& before, const Sources& after) {
  Changes out;
  for (const auto& [name, source] : after) {
    const auto at = before.find(name);
    const Source none;
    const std::string files = changed_files(at == before.end() ? none : at->second, source);
    if (at == before.end() || at->second.hash != source.hash || !files.empty()) {
      out.sources.push_back(name);
      if (!files.empty()) {
        out.files.push_back(files);
      }
    }
  }
  for (const auto& [name, source] : before) {
    if (!after.contains(name)) {
      out.sources.push_back(name);
    }
  }
  return out;
}

std::string words(const Changes& changes, const std::string& since, const std::string& single, const std::string& named) {
  if (changes.sources.empty()) {
    return "";
  }
  std::vector<std::string> names;
  for (const std::string& name : changes.sources) {
    if (!name.empty()) {
      names.push_back("'" + name + "'");
    }
  }
  return (names.empty() ? single : named + join(names, " and ")) + " have changed since " + since + " was saved" +
         (changes.files.empty() ? "" : ": " + join(changes.files, "; "));
}

std::string sampled_print(const fs::path& path, std::size_t places) {
  const InputFile file(path);
  Digest digest;
  digest.add(to_text(file.size()));
  std::string buffer(kEdge, '\0');
  const auto add = [&](std::int64_t offset, std::size_t size) {
    digest.add(std::string_view(buffer).substr(0, file.read_at(offset, buffer.data(), size)));
  };
  add(0, kEdge);
  for (std::size_t i = 1; i <= places && file.size() > static_cast<std::int64_t>(2 * kEdge); ++i) {
    add(file.size() / static_cast<std::int64_t>(places + 1) * static_cast<std::int64_t>(i), kPlace);
  }
  add(std::max<std::int64_t>(0, file.size() - static_cast<std::int64_t>(kEdge)), kEdge);
  return digest.hex();
}

}  // namespace

std::vector<FilePrint> sampled_prints(const SourceFiles& files) {
  std::vector<FilePrint> out;
  if (files.files.size() > kMostFilePrints) {
    return out;
  }
  const std::size_t places = std::min<std::size_t>(64, kAllPlaces / std::max<std::size_t>(1, files.files.size()));
  for (const SourceFile& file : files.files) {
    out.push_back({file.name, file.identity.empty() ? sampled_print(file.path, places) : file.identity});
  }
  return out;
}

std::string file_lines(const std::vector<FilePrint>& files) {
  std::string out;
  for (const FilePrint& file : files) {
    if (files.size() <= kMostFilePrints && file.name.find('\n') == std::string::npos) {
      out += "  " + file.hash + " " + file.name + "\n";
    }
  }
  return out;
}

std::string data_record(const std::string& training, const std::vector<EvalRecord>& evaluation) {
  std::string out = training;
  if (!evaluation.empty()) {
    out += (out.ends_with('\n') ? "" : "\n") + std::string(kEvaluation) + "\n";
  }
  for (const EvalRecord& set : evaluation) {
    // The first line is the set's hash, to which its name comes.
    const std::size_t end = std::min(set.fingerprint.find('\n'), set.fingerprint.size());
    out += set.fingerprint.substr(0, end) + (set.name.empty() ? "" : " " + set.name) + set.fingerprint.substr(end);
    out += out.ends_with('\n') ? "" : "\n";
  }
  return out;
}

DataChanges data_changes(const std::string& before, const std::string& after, const std::string& since, const std::string& only) {
  const Parsed old = parse(before);
  const Parsed now = parse(after);
  DataChanges out;
  out.training = words(compare(old.training, now.training), since, "the data files" + (only.empty() ? "" : " (" + only + ")"),
                       "the files of data set ");
  if (old.has_evaluation && now.has_evaluation) {
    // Sets that were added or left out are the job's own wish; those of both sides are compared.
    Sources both;
    Sources before_of_both;
    for (const auto& [name, source] : now.evaluation) {
      if (const auto at = old.evaluation.find(name); at != old.evaluation.end()) {
        both[name] = source;
        before_of_both[name] = at->second;
      }
    }
    out.evaluation = words(compare(before_of_both, both), since, "the evaluation data", "the evaluation sets ");
  }
  return out;
}

}  // namespace kf
