#pragma once
// The numbers of a step, as names.def has them, without their values: for docs, for what others may not log, for who makes a number.

#include <array>
#include <span>
#include <string>
#include <string_view>

namespace kf {

struct NumberRow {
  /// As the macros of names.def; `mean`: of a term, too.
  enum class Kind { number, mean, added, family, sourced };
  Kind kind;
  std::string_view name;  // with a '*' in a family's
  std::string_view unit;
  std::string_view where;  // which rows have it; empty: every one
  std::string_view doc;
};

/// In the order of names.def.
std::span<const NumberRow> number_rows();

/// Names of the numbers that only some rows have.
namespace row_key {
#define ADDED(id, name, unit, where, doc) inline constexpr const char* id = name;
#include "metrics/names/names.def"
/// "loss_fn/focal": the member `name` of a family.
std::string of(std::string_view family, std::string_view name);
}  // namespace row_key

/// The numbers of an evaluation: keys of "eval" in metrics.jsonl, columns eval_loss, eval_NAME_loss, ... of metrics.csv.
inline constexpr std::array<std::string_view, 7> kEvalNumbers{"loss",     "perplexity", "tokens",        "bits_per_byte",
                                                              "accuracy", "ema",        "mtp_acceptance"};

/// Whether every row has a number of this name.
bool is_in_every_row(std::string_view name);
/// Whether rows have a number of this name by themselves, in metrics.jsonl or as a column of metrics.csv, or it marks a kind of row
/// ("eval"): nobody else may use it.
bool is_row_key(std::string_view name);
/// Whether it is a number of the source `source` of a mixture.
bool is_source_key(std::string_view name, std::string_view source);

/// docs/metrics.md.
std::string numbers_markdown();

}  // namespace kf
