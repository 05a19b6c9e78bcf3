#include <algorithm>
#include <iostream>
#include <optional>

#include "app/command/choices_report.h"
#include "app/command/commands.h"
#include "app/command/documents_report.h"
#include "app/help/usage.h"
#include "app/line/option_list.h"
#include "app/script/inference.h"
#include "config/tree/finite.h"
#include "config/tree/json.h"
#include "core/error.h"
#include "kernels/product/products_scope.h"
#include "metrics/eval_table.h"
#include "run/device.h"

namespace kf {
namespace {

const OptionNames kNames{"kf-host eval",
                         {"--data", "--choices", "--documents", "--documents", "--items", "--delimiter", "--format", "--script",
                          "--tokenizer", "--weights", "--device"},
                         {},
                         true};

OptionList parse(const Arguments& args) {
  OptionList list = parse_options(args, kNames);
  KF_CHECK(!list.words.empty(), Code::config, "no checkpoint was given\n{}", usage::kEval);
  KF_CHECK(list.words.size() == 1, Code::config, "one checkpoint at a time, got '{}' and '{}'", list.words[0], list.words[1]);
  KF_CHECK(int{list.has("--data")} + int{list.has("--choices")} + int{list.has("--documents")} <= 1, Code::config,
           "--data, --choices and --documents are evaluations of their own; run one after the other");
  for (const char* option : {"--items", "--delimiter"}) {
    KF_CHECK(!list.has(option) || list.has("--choices"), Code::config, "{} needs --choices", option);
  }
  if (list.has("--format")) {
    check_word("--format", list.last("--format"), {"text", "json"});
  }
  return list;
}

bool is_given(const OptionList& list, const std::string& key) {
  return std::any_of(list.overrides.begin(), list.overrides.end(),
                     [&](const std::string& override_) { return override_.rfind("--" + key + "=", 0) == 0; });
}

InferenceRequest request_of(const OptionList& list, at::Device device) {
  InferenceRequest request{list.words[0], device};
  request.tokenizer = list.last("--tokenizer");
  request.weights = weight_kind_named(list.has("--weights") ? list.last("--weights") : "saved", "--weights");
  request.with_data = !list.has("--choices") && !list.has("--documents") && !list.has("--data");
  if (list.has("--data")) {
    const std::string data = list.last("--data");
    request.overrides = {"--eval.enabled=true",
                         data.starts_with("hf:") ? "--eval.hf_dataset_name=" + data.substr(3) : "--eval.dataset_path=" + data};
    if (!is_given(list, "eval.file_pattern")) {
      request.overrides.emplace_back("--eval.file_pattern=");  // of a folder every file whose name says data, as data info takes them
    }
    if (!is_given(list, "eval.steps")) {
      request.overrides.emplace_back("--eval.steps=-1");
    }
  } else if (is_given(list, "eval.dataset_path") || is_given(list, "eval.datasets[0].path")) {
    request.overrides = {"--eval.enabled=true"};
  }
  request.overrides.insert(request.overrides.end(), list.overrides.begin(), list.overrides.end());
  return request;
}

std::string padded(const std::string& text, std::size_t width) {
  return text.size() < width ? std::string(width - text.size(), ' ') + text : text;
}

std::string row_text(std::string name, const EvalResult& eval, std::size_t width) {
  const auto cell = [](const std::optional<double>& number, int digits, std::size_t wide) {
    return padded(number ? fixed(*number, digits) : "-", wide);
  };
  std::optional<double> loss, perplexity;
  if (eval.has_loss()) {
    loss = eval.loss;
    perplexity = eval.perplexity;
  }
  name.resize(std::max(width, name.size()), ' ');
  return name + cell(loss, 4, 10) + cell(perplexity, 3, 13) + cell(eval.bits_per_byte, 4, 12) + cell(eval.accuracy, 4, 11) +
         padded(grouped(eval.tokens), 14);
}

void print_table(const EvalResult& eval) {
  std::size_t width = 4;
  for (const EvalResult& set : eval.sets) {
    width = std::max(width, set.name.size());
  }
  std::cout << "set" << std::string(width - 3, ' ') << "      loss   perplexity   bits/byte   accuracy        tokens\n";
  for (const EvalResult& set : eval.sets) {
    std::cout << row_text(set.name, set, width) << '\n';
  }
  std::cout << row_text(eval.sets.empty() ? "all" : "mean", eval, width) << '\n';
}

void print_json(const LoadedModel& loaded, const EvalResult& eval) {
  config::Table row;
  row["checkpoint"] = config::Node(loaded.path.string());
  if (loaded.step) {
    row["step"] = config::Node(*loaded.step);
  }
  row["eval"] = config::Node(to_numbers(eval));
  std::cout << config::to_json(config::with_finite_numbers(config::Node(std::move(row)))) << '\n';
}

std::int64_t batch_size_of(const LoadedModel& loaded) { return loaded.config.eval.batch_size > 0 ? loaded.config.eval.batch_size : 16; }

ChoicesRequest choices_of(const OptionList& list, const LoadedModel& loaded, at::Device device) {
  ChoicesRequest request;
  request.file = list.last("--choices");
  request.items = list.last("--items");
  request.json = list.last("--format") == "json";
  request.options.device = device;
  request.options.style = loaded.prompts;
  request.options.max_positions = loaded.config.model.max_seq_len;
  request.options.batch_size = batch_size_of(loaded);
  if (list.has("--delimiter")) {
    request.options.delimiter = list.last("--delimiter");
  }
  return request;
}

}  // namespace

int eval_command(const Arguments& args) {
  const OptionList list = parse(args);
  const at::Device device = open_device(list.has("--device") ? list.last("--device") : "auto").device;
  const RecordedScript own = script_for(list.last("--script"), list.words[0]);
  ScriptSession script(own.path, own.arguments, own.copies);
  InferenceRequest request = request_of(list, device);
  request.script = &script;
  const LoadedModel loaded = load_for_inference(request, script.registries());
  const ProductsScope products(loaded.products);
  if (list.has("--choices")) {
    report_choices(loaded, choices_of(list, loaded, device), std::cout);
    return 0;
  }
  if (list.has("--documents")) {
    report_documents(loaded, {list.last("--documents"), list.last("--format") == "json", device, batch_size_of(loaded)}, std::cout);
    return 0;
  }
  const EvalResult eval = evaluate_loaded(loaded, loaded.config, device, script.registries());
  if (list.last("--format") == "json") {
    print_json(loaded, eval);
  } else {
    print_table(eval);
  }
  return 0;
}

}  // namespace kf
