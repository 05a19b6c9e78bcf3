#include "metrics/names/names.h"

#include <algorithm>
#include <array>
#include <cstdint>

#include "core/text.h"

namespace kf {
namespace {

using Kind = NumberRow::Kind;

constexpr NumberRow kRows[] = {
#define NUMBER(type, name, unit, doc) {Kind::number, #name, unit, "", doc},
#define MEAN(name, unit, doc) {Kind::mean, #name, unit, "", doc},
#define ADDED(id, name, unit, where, doc) {Kind::added, name, unit, where, doc},
#define FAMILY(id, name, unit, where, doc) {Kind::family, name, unit, where, doc},
#define SOURCED(id, name, unit, where, doc) {Kind::sourced, name, unit, where, doc},
#include "metrics/names/names.def"
};

/// Whether metrics.csv has a column of this name for an evaluation: eval_loss, and eval_NAME_loss of a set.
bool is_eval_column(std::string_view name) {
  return name.starts_with("eval_") && std::any_of(kEvalNumbers.begin(), kEvalNumbers.end(), [&](std::string_view number) {
           return name.ends_with(number) && name.substr(0, name.size() - number.size()).ends_with('_');
         });
}

/// "loss_fn/" of "loss_fn/*".
std::string_view stem(std::string_view family) { return family.substr(0, family.find('*')); }

bool is_reserved_by(const NumberRow& row, std::string_view name) {
  switch (row.kind) {
    case Kind::number:
    case Kind::mean:
    case Kind::added: return name == row.name;
    case Kind::family: return name.starts_with(stem(row.name));
    case Kind::sourced: return false;  // only where there is such a source
  }
  return false;
}

std::string shown(const NumberRow& row) {
  return row.kind == Kind::family    ? row_key::of(row.name, "NAME")
         : row.kind == Kind::sourced ? row_key::of(row.name, "SOURCE")
                                     : std::string(row.name);
}

std::string table(bool every_row) {
  std::string out = every_row ? "| number | unit | what |\n|---|---|---|\n" : "| number | unit | with | what |\n|---|---|---|---|\n";
  for (const NumberRow& row : kRows) {
    if (row.where.empty() == every_row) {
      out += every_row ? format("| `{}` | {} | {} |\n", shown(row), row.unit, row.doc)
                       : format("| `{}` | {} | {} | {} |\n", shown(row), row.unit, row.where, row.doc);
    }
  }
  return out;
}

}  // namespace

std::span<const NumberRow> number_rows() { return kRows; }

std::string row_key::of(std::string_view family, std::string_view name) {
  const std::string_view before = stem(family);
  return std::string(before) + std::string(name) + std::string(family.substr(before.size() + 1));
}

bool is_in_every_row(std::string_view name) {
  return std::any_of(std::begin(kRows), std::end(kRows), [name](const NumberRow& row) { return row.where.empty() && row.name == name; });
}

bool is_row_key(std::string_view name) {
  return name == "eval" || name.starts_with("eval.") || name.starts_with("eval/") || name == "not_finite" || is_eval_column(name) ||
         std::any_of(std::begin(kRows), std::end(kRows), [name](const NumberRow& row) { return is_reserved_by(row, name); });
}

bool is_source_key(std::string_view name, std::string_view source) {
  return std::any_of(std::begin(kRows), std::end(kRows),
                     [&](const NumberRow& row) { return row.kind == Kind::sourced && name == row_key::of(row.name, source); });
}

std::string numbers_markdown() {
  std::vector<std::string> means;
  for (const NumberRow& row : kRows) {
    if (row.kind == Kind::mean) {
      means.push_back("`" + std::string(row.name) + "`");
    }
  }
  std::vector<std::string> others;
  for (const std::string_view number : kEvalNumbers) {
    if (number != "loss") {
      others.push_back("`" + std::string(number) + "`");
    }
  }
  return "# Numbers of a step\n\n"
         "<!-- Made by `kf-host config docs metrics` from host/metrics/names/names.def; edit that file. -->\n\n"
         "What a logged step has in `metrics.jsonl`, in `metrics.csv`, in sinks of scripts and in `ctx:metrics()`, under the same names. "
         "[running.md](running.md) says how the files look,\n"
         "[evaluation.md](evaluation.md) has the numbers of evaluations. Nobody else may use these names, in `ctx:log` or as a metric; "
         "those "
         "with SOURCE are taken where the mixture has such a\n"
         "source. Taken, too, are `eval` and what begins with `eval.` or `eval/`, as reports and trackers call numbers of evaluations, "
         "`not_finite`, and the columns of evaluations in `metrics.csv`: `eval_loss`, `eval_NAME_loss`, "
         "and the same with\n" +
         join(others, ", ") +
         ".\n\n"
         "## In every row\n\n" +
         table(true) + "\nMeans over the labels of the step (" + join(means, ", ") +
         ") are `null` in a step without a label that counts, `nil` in Lua.\n\n## In some rows\n\n" + table(false);
}

}  // namespace kf
