// From what the settings say to an ordered list of files.

#include <algorithm>
#include <set>

#include "config/tree/json.h"
#include "core/error.h"
#include "core/log.h"
#include "core/real_paths.h"
#include "core/text.h"
#include "data/file/braces.h"
#include "data/hub/dataset.h"
#include "data/read/reader.h"

namespace kf {
namespace {

/// Files that tell about the data beside them.
bool is_about_data(const fs::path& path) {
  const std::string name = lower(path.filename().string());
  return name == "readme.md" || name == "license" || name == "license.md" || name == "license.txt" || name == "dataset_info.json" ||
         name == "dataset_infos.json" || name == "state.json" || name == "dataset_dict.json";
}

/// Of a folder that is read without a pattern. A link to nothing whose name says nothing may have been a folder.
bool is_data_of_folder(const fs::path& path) {
  std::error_code ignored;
  if (!path.has_extension() && !fs::exists(path, ignored)) {
    log::warn("{}; a folder behind it would have been searched", broken_link_fault(path));
    return false;
  }
  return name_says_data(path) && !is_about_data(path);
}

bool has_wildcard(std::string_view text) { return text.find_first_of("*?[") != std::string_view::npos; }

class Collector {
 public:
  explicit Collector(const SourceRequest& request) : request_(request) {}

  void add_path(const std::string& text) {
    std::error_code error;
    if (fs::is_directory(text, error)) {
      add_folder(text);
    } else if (fs::exists(text, error)) {
      add_file(text, parent_of(text));
    } else {
      add_pattern(text);
    }
  }

  SourceFiles take() {
    check_kinds();
    return std::move(out_);
  }

 private:
  static fs::path parent_of(const fs::path& path) { return path.has_parent_path() ? path.parent_path() : fs::path("."); }
  std::string asked(const std::string& path) const { return format("{} = {}", request_.path_key, kf::quoted(path)); }

  void add_file(const fs::path& path, const fs::path& root) {
    std::error_code error;
    KF_CHECK(fs::exists(path, error) || !fs::is_symlink(path), Code::data, "{}: {}; mend the link or remove it",
             asked(join(request_.paths, ", ")), broken_link_fault(path));
    if (!seen_.insert(real_.of(path)).second) {
      return;  // a link to a file that is there already
    }
    const FileKind kind = kind_of_file(path);
    SourceFile file{path,   path.lexically_relative(root).generic_string(), static_cast<std::int64_t>(fs::file_size(path)), kind, "",
                    nullptr};
    out_.bytes += file.size;
    out_.files.push_back(std::move(file));
    if (out_.root.empty()) {
      out_.root = root;
    }
  }

  void add_pattern(const std::string& text) {
    const std::vector<std::string> names = expand_braces(text);
    KF_CHECK(names.size() > 1 || has_wildcard(text), Code::data, "{}: no such file or folder{}", asked(text), neighbours(text));
    for (const std::string& name : names) {
      std::error_code error;
      if (fs::is_directory(name, error)) {
        add_folder(name);
      } else if (fs::exists(name, error)) {
        add_file(name, parent_of(name));
      } else {
        add_wildcard(text, name);
      }
    }
  }

  /// Each name of a list or range must be there: a gap in {00..12} is a missing shard, not a smaller corpus.
  void add_wildcard(const std::string& text, const std::string& name) {
    KF_CHECK(has_wildcard(name), Code::data, "{}: there is no {}{}", asked(text), name, neighbours(name));
    fs::path root = name[0] == '/' ? "/" : ".";
    std::string rest = name;
    for (std::size_t slash = rest.find('/'); slash != std::string::npos && !has_wildcard(rest.substr(0, slash)); slash = rest.find('/')) {
      if (slash > 0) {
        root /= rest.substr(0, slash);
      }
      rest.erase(0, slash + 1);
    }
    std::error_code error;
    KF_CHECK(fs::is_directory(root, error), Code::data, "{}: there is no folder {}", asked(text), root);
    const std::vector<fs::path> found = glob(root, rest);
    KF_CHECK(!found.empty(), Code::data, "{}: nothing matches {} in {}; {}", asked(text), rest, root, what_is_in(root));
    for (const fs::path& path : found) {
      add_file(path.lexically_normal(), root);
    }
  }

  void add_folder(const fs::path& folder) {
    const std::vector<fs::path> matched = request_.pattern.empty() ? std::vector<fs::path>() : glob_ranges(folder, request_.pattern);
    if (matched.empty() && add_saved(folder)) {
      return;
    }
    std::vector<fs::path> files = matched;
    if (request_.pattern.empty()) {
      files = glob(folder, "**");
      std::erase_if(files, [](const fs::path& path) { return !is_data_of_folder(path); });
      KF_CHECK(!files.empty(), Code::data, "{}: no file of the folder has a name that says data (.txt, .jsonl, .parquet, .npy, ...); {}",
               asked(folder.string()), what_is_in(folder));
    }
    KF_CHECK(!files.empty(), Code::data, "no files match {} = {} in {} ({}); {}", request_.pattern_key, kf::quoted(request_.pattern),
             folder, request_.path_key, what_is_in(folder));
    for (const fs::path& path : files) {
      add_file(path, folder);
    }
  }

  static std::vector<fs::path> glob_ranges(const fs::path& folder, const std::string& pattern) {
    std::vector<fs::path> found;
    for (const std::string& one : expand_braces(pattern)) {
      const std::vector<fs::path> some = glob(folder, one);
      found.insert(found.end(), some.begin(), some.end());
    }
    std::sort(found.begin(), found.end());
    return found;
  }

  /// What `datasets` saves: state.json names the files of one set; dataset_dict.json names folders, one a split.
  bool add_saved(const fs::path& folder) {
    std::error_code error;
    if (fs::exists(folder / "dataset_dict.json", error)) {
      const fs::path split = folder / request_.hf_split;
      KF_CHECK(fs::is_directory(split, error) && add_saved(split), Code::data, "{} holds no split {}; {}", folder,
               kf::quoted(request_.hf_split), what_is_in(folder));
      return true;
    }
    if (!fs::exists(folder / "state.json", error)) {
      return false;
    }
    for (const std::string& name : saved_names(folder / "state.json")) {
      KF_CHECK(fs::exists(folder / name, error), Code::data, "{}: state.json names {}, which is not there; {}", folder, name,
               what_is_in(folder));
      add_file(folder / name, folder);
    }
    return true;
  }

  static std::vector<std::string> saved_names(const fs::path& path) {
    const config::Node state = config::parse_json(read_file(path), path.string());
    const config::Table* const table = state.table();
    const auto* const files = table == nullptr ? nullptr : table->find("_data_files");
    KF_CHECK(files != nullptr && files->array() != nullptr, Code::data, "{} has no list _data_files: not a folder that datasets saved",
             path);
    std::vector<std::string> names;
    for (const config::Node& file : *files->array()) {
      const config::Node* const name = file.table() == nullptr ? nullptr : file.table()->find("filename");
      const auto* const text = name == nullptr ? nullptr : std::get_if<std::string>(&name->value);
      KF_CHECK(text != nullptr, Code::data, "{}: an entry of _data_files has no filename", path);
      KF_CHECK(fs::path(*text).filename() == *text, Code::data, "{}: {} is no plain file name", path, kf::quoted(*text));
      names.push_back(*text);
    }
    KF_CHECK(!names.empty(), Code::data, "{} names no files", path);
    return names;
  }

  std::string what_is_in(const fs::path& folder) const {
    const std::vector<fs::path> all = glob(folder, "**");
    if (all.empty()) {
      return "the folder holds no files";
    }
    const std::string suffix = all.front().extension().string();
    return format("it holds {} {}, such as {}; set {} = \"**/*{}\" to read these", grouped(static_cast<std::int64_t>(all.size())),
                  all.size() == 1 ? "file" : "files", all.front().lexically_relative(folder), request_.pattern_key, suffix);
  }

  /// The nearest name beside a missing one.
  static std::string neighbours(const std::string& text) {
    const fs::path path(text);
    std::error_code error;
    if (fs::is_symlink(path, error)) {
      return "; " + broken_link_fault(path);
    }
    std::vector<std::string> names;
    for (fs::directory_iterator it(parent_of(path), error), end; !error && it != end && names.size() < 10000; it.increment(error)) {
      names.push_back(it->path().filename().string());
    }
    const std::string near = nearest(path.filename().string(), names);
    return near.empty() ? "" : "; did you mean " + (path.parent_path() / near).string() + "?";
  }

  void check_kinds() {
    const auto is_tokens = [](const SourceFile& file) { return file.kind.format == FileFormat::tokens; };
    const auto token = std::find_if(out_.files.begin(), out_.files.end(), is_tokens);
    const auto text = std::find_if_not(out_.files.begin(), out_.files.end(), is_tokens);
    const std::string what = request_.pattern.empty()
                                 ? asked(join(request_.paths, ", "))
                                 : format("{} = {} in {}", request_.pattern_key, kf::quoted(request_.pattern), join(request_.paths, ", "));
    KF_CHECK(token == out_.files.end() || text == out_.files.end(), Code::data,
             "{} matches token files ({}) and others ({}); narrow it to one kind, as with {} = \"**/*{}\"", what, token->name, text->name,
             request_.pattern_key, token->path.extension());
    out_.tokens = token != out_.files.end();
  }

  const SourceRequest& request_;
  SourceFiles out_;
  RealPaths real_;
  std::set<std::string> seen_;
};

}  // namespace

SourceFiles resolve_source(const SourceRequest& request) {
  if (request.paths.empty()) {
    KF_CHECK(!request.hf_name.empty(), Code::data, "{} names no file and no data set of the hub", request.path_key);
    return hub::resolve_dataset(request);
  }
  Collector collector(request);
  for (const std::string& path : request.paths) {
    collector.add_path(path);
  }
  return collector.take();
}

}  // namespace kf
