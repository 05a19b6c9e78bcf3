#include "app/choices_report.h"

#include <ostream>

#include "config/finite.h"
#include "config/json.h"
#include "core/error.h"

namespace kf {
namespace {

template <class T>
config::Node list(const std::vector<T>& values) {
  config::Array out;
  for (const T& value : values) {
    out.emplace_back(value);
  }
  return config::Node(std::move(out));
}

std::string item_rows(const std::vector<ChoiceItem>& items, const std::vector<ChoiceScores>& scores) {
  std::string rows;
  for (std::size_t i = 0; i < items.size(); ++i) {
    config::Table row;
    row["line"] = config::Node(items[i].line);
    row["answer"] = config::Node(items[i].answer);
    row["best"] = config::Node(scores[i].best);
    row["best_by_bytes"] = config::Node(scores[i].best_by_bytes);
    row["loglikelihoods"] = list(scores[i].loglikelihoods);
    row["bytes"] = list(scores[i].bytes);
    rows += config::to_json(config::with_finite_numbers(config::Node(std::move(row)))) + '\n';
  }
  return rows;
}

}  // namespace

void report_choices(const LoadedModel& loaded, const ChoicesRequest& request, std::ostream& out) {
  KF_CHECK(loaded.tokenizer != nullptr, Code::config, "nothing turns text into ids for the model of {}; give --tokenizer", loaded.path);
  KF_CHECK(fs::exists(request.file), Code::data, "--choices {}: no such file", request.file);
  const std::vector<ChoiceItem> items = parse_choices(read_file(request.file), request.file);
  const std::vector<ChoiceScores> scores = score_choices(*loaded.model, *loaded.tokenizer, items, request.file, request.options);
  std::vector<bool> right;
  std::vector<bool> right_by_bytes;
  for (std::size_t i = 0; i < items.size(); ++i) {
    right.push_back(scores[i].best == items[i].answer);
    right_by_bytes.push_back(scores[i].best_by_bytes == items[i].answer);
  }
  const Accuracy acc = accuracy_of(right);
  const Accuracy acc_norm = accuracy_of(right_by_bytes);
  if (!request.items.empty()) {
    write_file_atomic(request.items, item_rows(items, scores));
  }
  if (request.json) {
    config::Table row;
    row["checkpoint"] = config::Node(loaded.path.string());
    row["choices"] = config::Node(request.file);
    row["items"] = config::Node(static_cast<std::int64_t>(items.size()));
    row["acc"] = config::Node(acc.value);
    row["acc_stderr"] = config::Node(acc.error);
    row["acc_norm"] = config::Node(acc_norm.value);
    row["acc_norm_stderr"] = config::Node(acc_norm.error);
    out << config::to_json(config::with_finite_numbers(config::Node(std::move(row)))) << '\n';
    return;
  }
  out << grouped(static_cast<std::int64_t>(items.size())) << " questions of " << request.file << '\n'
      << "acc       " << fixed(acc.value, 4) << " +- " << fixed(acc.error, 4) << "   by log-likelihood\n"
      << "acc_norm  " << fixed(acc_norm.value, 4) << " +- " << fixed(acc_norm.error, 4) << "   by log-likelihood a byte\n";
}

}  // namespace kf
