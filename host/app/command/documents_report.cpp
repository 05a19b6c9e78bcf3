#include "app/command/documents_report.h"

#include <cmath>
#include <ostream>

#include "config/tree/finite.h"
#include "config/tree/json.h"
#include "core/error.h"
#include "core/input_file.h"
#include "train/eval/rolling.h"
#include "train/eval/score_ids.h"

namespace kf {
namespace {

std::string text_of(const config::Node& record, const std::string& place) {
  const config::Node* const field = record.table() != nullptr ? record.table()->find("text") : &record;
  const auto* const text = field != nullptr ? std::get_if<std::string>(&field->value) : nullptr;
  KF_CHECK(text != nullptr, Code::data, "{}: expected a JSON string, or {\"text\": \"...\"}", place);
  return *text;
}

std::vector<std::string> documents_in(const std::string& file) {
  KF_CHECK(fs::is_regular_file(file), Code::data, "--documents {}: no such file", file);
  const std::string content = read_input(file, Code::data);
  if (!file.ends_with(".jsonl")) {
    KF_CHECK(!content.empty(), Code::data, "--documents {}: the file is empty", file);
    return {content};
  }
  std::vector<std::string> out;
  const std::vector<std::string> lines = split(content, '\n');
  for (std::size_t i = 0; i < lines.size(); ++i) {
    if (!trim(lines[i]).empty()) {
      const std::string place = format("{}:{}", file, i + 1);
      out.push_back(text_of(config::parse_json(lines[i], place), place));
    }
  }
  KF_CHECK(!out.empty(), Code::data, "--documents {} holds no document", file);
  return out;
}

/// What stands before the first token: BOS, or else what ends a document.
std::int64_t prefix_of(const LoadedModel& loaded) {
  const std::optional<std::int64_t> first = loaded.tokenizer->bos_id() ? loaded.tokenizer->bos_id() : loaded.tokenizer->eos_id();
  KF_CHECK(first.has_value(), Code::data, "the tokenizer of {} has no id that begins or ends a document, and the first token needs one",
           loaded.path);
  return *first;
}

}  // namespace

void report_documents(const LoadedModel& loaded, const DocumentsRequest& request, std::ostream& out) {
  KF_CHECK(loaded.tokenizer != nullptr, Code::config, "nothing turns text into ids for the model of {}; give --tokenizer", loaded.path);
  const std::vector<std::string> documents = documents_in(request.file);
  const std::int64_t prefix = prefix_of(loaded);
  std::vector<ChoiceIds> windows;
  double words = 0;
  double bytes = 0;
  for (const std::string& document : documents) {
    const std::vector<std::int64_t> ids = begun_ids(*loaded.tokenizer, document, loaded.prompts);
    std::vector<ChoiceIds> more = rolling_windows(ids, prefix, loaded.config.model.max_seq_len);
    windows.insert(windows.end(), std::make_move_iterator(more.begin()), std::make_move_iterator(more.end()));
    words += static_cast<double>(count_words(document));
    bytes += static_cast<double>(document.size());
  }
  KF_CHECK(!windows.empty(), Code::data, "--documents {}: the documents have no token", request.file);
  double sum = 0;
  for (const double one : loglikelihoods(*loaded.model, windows, request.device, request.batch_size)) {
    sum += one;
  }
  const std::pair<const char*, double> numbers[] = {{"word_perplexity", std::exp(-sum / words)},
                                                    {"byte_perplexity", std::exp(-sum / bytes)},
                                                    {"bits_per_byte", -sum / bytes / std::log(2.0)}};
  if (request.json) {
    config::Table row;
    row["checkpoint"] = config::Node(loaded.path.string());
    row["file"] = config::Node(request.file);
    row["documents"] = config::Node(static_cast<std::int64_t>(documents.size()));
    row["loglikelihood"] = config::Node(sum);
    for (const auto& [name, value] : numbers) {
      row[name] = config::Node(value);
    }
    out << config::to_json(config::with_finite_numbers(config::Node(std::move(row)))) << '\n';
    return;
  }
  out << grouped(static_cast<std::int64_t>(documents.size())) << " documents of " << request.file << '\n';
  for (const auto& [name, value] : numbers) {
    out << name << std::string(17 - std::string(name).size(), ' ') << fixed(value, 4) << '\n';
  }
}

}  // namespace kf
