#include "parity/case.h"

#include <algorithm>
#include <cctype>
#include <cmath>
#include <cstdlib>

#include "core/error.h"
#include "core/text.h"

namespace kf::parity {
namespace {

/// Lays `over` on `base`: tables key by key, everything else whole.
void lay(Node& base, const Node& over) {
  if (base.table() && over.table()) {
    config::merge(*base.table(), *over.table());
  } else {
    base = over;
  }
}

bool word_char(char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_'; }

/// Where the next number starts: a digit that is not inside a word ("l2", "fp32"), at or after `from`.
std::size_t next_number(std::string_view text, std::size_t from) {
  for (std::size_t i = from; i < text.size(); ++i) {
    const bool inside = i > 0 && (word_char(text[i - 1]) || text[i - 1] == '.');
    if (std::isdigit(static_cast<unsigned char>(text[i])) && !inside) {
      return i;
    }
  }
  return std::string_view::npos;
}

/// "1e-5 abs + 1e-4 rel", "1e-5": terms from `at` on. A bare number is absolute.
Bound read_bound(const std::string& text, std::size_t at) {
  Bound bound;
  while (true) {
    char* end = nullptr;
    const double value = std::strtod(text.c_str() + at, &end);
    std::size_t next = static_cast<std::size_t>(end - text.c_str());
    const std::string_view rest = std::string_view(text).substr(next);
    if (rest.starts_with(" rel")) {
      bound.rel += value;
      next += 4;
    } else {
      bound.abs += value;
      next += rest.starts_with(" abs") ? 4 : 0;
    }
    if (!std::string_view(text).substr(next).starts_with(" + ")) {
      return bound;
    }
    at = next + 3;
  }
}

std::vector<std::string> strings(const Node* node, std::string_view what) {
  std::vector<std::string> out;
  if (node) {
    for (const Node& item : list(*node, what)) {
      out.push_back(text(item, what));
    }
  }
  return out;
}

}  // namespace

double Tolerance::allowed(double expected) const {
  double least = HUGE_VAL;
  for (const Bound& bound : bounds) {
    least = std::min(least, bound.abs + bound.rel * std::abs(expected));
  }
  return least;
}

std::vector<Clause> parse_tolerance(std::string_view text) {
  std::vector<Clause> clauses;
  for (const std::string& part : split(text, ';')) {
    const std::size_t at = next_number(part, 0);
    if (at != std::string::npos) {
      clauses.push_back({std::string(trim(std::string_view(part).substr(0, at))), read_bound(part, at)});
    } else if (part.find("exact") != std::string::npos) {
      clauses.push_back({std::string(trim(part)), Bound{}});
    }
  }
  return clauses;
}

Case::Case(std::string area_, fs::path folder_, Table fields_, std::shared_ptr<const Table> format)
    : area(std::move(area_)), folder(std::move(folder_)), fields(std::move(fields_)), format_(std::move(format)) {
  name = text(at("name"), "name");
  kind = get("kind") ? text(at("kind"), "kind") : "";
  use_right = get("use") && text(at("use"), "use") == "right";
  not_compared_ = strings(get("not_compared"), "not_compared");
  merge_right();
}

void Case::merge_right() {
  const Node* right = use_right ? fields.find("right") : nullptr;
  if (!right || right->is_null()) {
    return;
  }
  const Node given = *right;  // `fields` is about to change
  if (given.array()) {
    fields["expected"] = given;
    return;
  }
  if (area == "config") {  // the whole outcome
    for (const char* key : {"accepted", "diff", "touched", "computed", "resolved_distributed", "keywords", "warning"}) {
      fields.erase(key);
    }
    config::merge(fields, table(given, "right"));
    return;
  }
  for (const auto& [key, value] : table(given, "right")) {
    Node& known = fields["expected"];
    if (known.is_null()) {
      known = Node(Table{});
    }
    const bool of_expected = known.table() && known.table()->find(key);
    if (of_expected || !fields.find(key)) {
      if (known.table()) {
        lay((*known.table())[key], value);
      }
    } else {
      lay(fields[key], value);
    }
  }
}

std::optional<std::string> Case::skipped() const {
  if (get("compare") && text(at("compare"), "compare") == "none") {
    return get("reason") ? text(at("reason"), "reason") : "not compared";
  }
  // `lifted_later`: none of the features that lift a limit exists yet, so the rejections are compared.
  return std::nullopt;
}

bool Case::left_out(std::string_view what) const {
  return std::any_of(not_compared_.begin(), not_compared_.end(), [&](const std::string& pattern) { return glob_match(pattern, what); });
}

const Node* Case::expected(std::string_view key) const { return parity::get(expected(), key); }

const Table& Case::expected() const {
  static const Table none;
  const Node* node = get("expected");
  return node && node->table() ? *node->table() : none;
}

const SafetensorsFile& Case::file() const {
  if (!file_) {
    file_ = std::make_shared<SafetensorsFile>(folder / text(at("file"), "file"));
  }
  return *file_;
}

SafetensorsFile Case::open(const std::string& other) const { return SafetensorsFile(folder / other); }

bool Case::has_tensor(const std::string& tensor_name) const {
  return get("file") && (file().contains(tensor_name) || has_right(tensor_name));
}

bool Case::has_right(const std::string& tensor_name) const { return get("file") && use_right && file().contains("right." + tensor_name); }

at::Tensor Case::tensor(const std::string& tensor_name) const {
  return file().tensor(has_right(tensor_name) ? "right." + tensor_name : tensor_name);
}

std::vector<std::string> Case::tensors(const std::string& prefix) const {
  std::vector<std::string> out;
  for (const std::string& full : get("file") ? file().names() : std::vector<std::string>{}) {
    std::string_view rest = full;
    if (rest.starts_with("right.")) {
      if (!use_right || file().contains(full.substr(6))) {
        continue;  // listed under its plain name
      }
      rest.remove_prefix(6);
    }
    if (rest.starts_with(prefix)) {
      out.emplace_back(rest.substr(prefix.size()));
    }
  }
  return out;
}

Tolerance Case::tolerance(std::string_view subject, std::initializer_list<Bound> readme) const {
  Tolerance out{readme};
  const Node* stated = get("tolerance") ? get("tolerance") : parity::get(*format_, "tolerance");
  if (stated) {
    const std::vector<Clause> clauses = parse_tolerance(text(*stated, "tolerance"));
    const auto found = std::find_if(clauses.begin(), clauses.end(), [&](const Clause& clause) {
      return clause.subject.empty() || clause.subject.find(subject) != std::string::npos;
    });
    if (found != clauses.end()) {
      out.bounds.push_back(found->bound);
    }
  }
  KF_CHECK(!out.bounds.empty(), Code::other, "neither the case nor its area states a tolerance for {}", subject);
  return out;
}

/// A folder of a Hugging Face model, or of an adapter (area "peft"), with the numbers that it should give is one case.
Case folder_case(const fs::path& folder) {
  const fs::path path = folder / "case.json";
  const Node manifest = parse_json(read_file(path), path.string());
  Table fields = table(manifest, path.string());
  fields["file"] = Node(std::string("expect.safetensors"));
  const Node* const area = fields.find("area");
  return {area ? text(*area, "area") : "hf", folder, std::move(fields), std::make_shared<const Table>()};
}

/// The model folders right below `folder`.
std::vector<Case> folder_cases(const fs::path& folder) {
  std::vector<fs::path> folders;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder)) {
    if (fs::exists(entry.path() / "case.json")) {
      folders.push_back(entry.path());
    }
  }
  std::sort(folders.begin(), folders.end());
  std::vector<Case> cases;
  for (const fs::path& each : folders) {
    cases.push_back(folder_case(each));
  }
  return cases;
}

std::vector<Case> load_cases(const fs::path& folder) {
  if (fs::exists(folder / "case.json")) {
    return {folder_case(folder)};
  }
  const fs::path path = folder / "cases.json";
  if (!fs::exists(path)) {
    if (std::vector<Case> models = folder_cases(folder); !models.empty()) {
      return models;
    }
  }
  const Node manifest = parse_json(read_file(path), path.string());
  const Table& top = table(manifest, path.string());
  const std::string area = text(at(top, "area"), "area");
  const auto format = std::make_shared<const Table>(get(top, "format") ? table(at(top, "format"), "format") : Table{});
  std::vector<Case> cases;
  for (const Node& entry : list(at(top, "cases"), "cases")) {
    cases.emplace_back(area, folder, table(entry, "case"), format);
  }
  const fs::path presets = folder / "configs.json";
  if (area == "config" && fs::exists(presets)) {
    const Node dumps = parse_json(read_file(presets), presets.string());
    for (const auto& [name, entry] : table(dumps, "configs.json")) {
      Table fields;
      fields["name"] = Node("configs.json " + name);
      fields["kind"] = Node(std::string("preset"));
      fields["preset"] = Node(name);
      fields["resolved"] = entry;
      for (const char* key : {"compare", "reason", "use", "right"}) {
        if (const Node* value = table(entry, name).find(key)) {
          fields[key] = *value;
        }
      }
      cases.emplace_back(area, folder, std::move(fields), format);
    }
  }
  return cases;
}

}  // namespace kf::parity
