#include "app/command/choices_report.h"

#include <ostream>

#include "config/tree/finite.h"
#include "config/tree/json.h"
#include "core/error.h"
#include "core/input_file.h"
#include "core/output_file.h"
#include "core/plain_file.h"

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
    row["best_by_characters"] = config::Node(scores[i].best_by_characters);
    row["best_by_bytes"] = config::Node(scores[i].best_by_bytes);
    row["loglikelihoods"] = list(scores[i].loglikelihoods);
    row["characters"] = list(scores[i].characters);
    row["bytes"] = list(scores[i].bytes);
    rows += config::to_json(config::with_finite_numbers(config::Node(std::move(row)))) + '\n';
  }
  return rows;
}

/// A number under its name in lm-evaluation-harness.
struct Named {
  std::string name;
  Accuracy share;
  const char* words;
};

/// How often the choice that `best` names is the answer.
Accuracy share(const std::vector<ChoiceItem>& items, const std::vector<ChoiceScores>& scores, std::int64_t ChoiceScores::*best) {
  std::vector<bool> right;
  for (std::size_t i = 0; i < items.size(); ++i) {
    right.push_back(scores[i].*best == items[i].answer);
  }
  return accuracy_of(right);
}

}  // namespace

void report_choices(const LoadedModel& loaded, const ChoicesRequest& request, std::ostream& out) {
  KF_CHECK(loaded.tokenizer != nullptr, Code::config, "nothing turns text into ids for the model of {}; give --tokenizer", loaded.path);
  KF_CHECK(path_exists(request.file), Code::data, "--choices {}: no such file", request.file);
  const std::vector<ChoiceItem> items = parse_choices(read_input(request.file, Code::data), request.file);
  const std::vector<ChoiceScores> scores = score_choices(*loaded.model, *loaded.tokenizer, items, request.file, request.options);
  const std::vector<Named> numbers{{"acc", share(items, scores, &ChoiceScores::best), "by log-likelihood"},
                                   {"acc_norm", share(items, scores, &ChoiceScores::best_by_characters), "by log-likelihood a character"},
                                   {"acc_bytes", share(items, scores, &ChoiceScores::best_by_bytes), "by log-likelihood a byte"}};
  if (!request.items.empty()) {
    write_output(request.items, item_rows(items, scores));
  }
  if (request.json) {
    config::Table row;
    row["checkpoint"] = config::Node(loaded.path.string());
    row["choices"] = config::Node(request.file);
    row["items"] = config::Node(static_cast<std::int64_t>(items.size()));
    for (const Named& number : numbers) {
      row[number.name] = config::Node(number.share.value);
      row[number.name + "_stderr"] = number.share.error ? config::Node(*number.share.error) : config::Node();
    }
    out << config::to_json(config::with_finite_numbers(config::Node(std::move(row)))) << '\n';
    return;
  }
  out << grouped(static_cast<std::int64_t>(items.size())) << " questions of " << request.file << '\n';
  for (const Named& number : numbers) {
    out << number.name << std::string(11 - number.name.size(), ' ') << fixed(number.share.value, 4) << " +- "
        << (number.share.error ? fixed(*number.share.error, 4) : "-     ") << "   " << number.words << '\n';
  }
}

}  // namespace kf
