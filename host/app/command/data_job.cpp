#include "app/command/data_job.h"

#include <charconv>
#include <limits>

#include "app/script/unused_settings.h"
#include "config/load/layers.h"
#include "core/error.h"
#include "data/chat/chat_format.h"
#include "data/file/token_file.h"
#include "data/tokenizer/tokenizer.h"

namespace kf {
namespace {

/// The value of `--name VALUE` or `--name=VALUE` at `i`, which moves on; nothing when the word is another.
std::optional<std::string> value_of(const Arguments& args, std::size_t& i, const std::string& name) {
  if (args[i].starts_with(name + "=")) {
    return args[i].substr(name.size() + 1);
  }
  if (args[i] != name) {
    return std::nullopt;
  }
  KF_CHECK(i + 1 < args.size(), Code::config, "{} needs a value", name);
  return args[++i];
}

std::optional<std::int64_t> count_of(const Arguments& args, std::size_t& i, const std::string& name) {
  const std::optional<std::string> text = value_of(args, i, name);
  if (!text) {
    return std::nullopt;
  }
  std::int64_t value = -1;
  const auto [end, error] = std::from_chars(text->data(), text->data() + text->size(), value);
  KF_CHECK(error == std::errc{} && end == text->data() + text->size() && value >= 0, Code::config, "{} {}: must be a number from 0 on",
           name, *text);
  return value;
}

bool given(const config::Loaded& loaded, const char* key) { return config::find_node(loaded.merged, key) != nullptr; }

bool same(const SourceSpec& a, const SourceSpec& b) {
  return a.path == b.path && a.pattern == b.pattern && a.transforms == b.transforms && a.hf_name == b.hf_name &&
         a.hf_config == b.hf_config && a.hf_split == b.hf_split && a.max_documents == b.max_documents && a.max_tokens == b.max_tokens;
}

bool same_text(const ReadOptions& a, const ReadOptions& b) {
  return a.text_field == b.text_field && a.text_template == b.text_template && a.messages_field == b.messages_field &&
         a.prompt_field == b.prompt_field && a.prompt_template == b.prompt_template && a.completion_field == b.completion_field &&
         a.answers_only == b.answers_only;
}

}  // namespace

DataCall parse_data_call(const Arguments& args, const std::string& usage, bool views) {
  DataCall call;
  for (std::size_t i = 0; i < args.size(); ++i) {
    if (const auto format = value_of(args, i, "--format")) {
      KF_CHECK(*format == "text" || *format == "json", Code::config, "--format {}: must be text or json", *format);
      call.json = *format == "json";
    } else if (const auto documents = count_of(args, i, "--documents")) {
      call.documents = documents;
    } else if (const auto rows = count_of(args, i, "--rows")) {
      call.rows = rows;
    } else if (const auto first = count_of(args, i, "--first")) {
      call.first = first;
    } else if (args[i].starts_with("--")) {
      call.overrides.push_back(args[i]);
    } else {
      KF_CHECK(call.target.empty(), Code::config, "one job or source at a time: {} and {}", call.target, args[i]);
      call.target = args[i];
    }
  }
  KF_CHECK(!call.target.empty(), Code::config, "{}", usage);
  KF_CHECK(views || !(call.documents || call.rows || call.first), Code::config,
           "--documents, --rows and --first are words of data peek\n{}", usage);
  return call;
}

std::string DataSource::what() const { return spec.path_key + " = " + kf::quoted(spec.path.empty() ? spec.hf_name : spec.path); }

DataJob::DataJob(const DataCall& call) : session_(!call.files && call.target.ends_with(".lua") ? call.target : "") {
  warn_unused_settings(call.overrides, SettingsUse::data);
  config::Request request;
  request.overrides = call.overrides;
  is_job_ = !call.files && (call.target.ends_with(".toml") || call.target.ends_with(".lua"));
  if (session_.has_script()) {
    request.recipe = session_.job();
    KF_CHECK(request.recipe.has_value(), Code::config, "{} returns no job", call.target);
  } else if (is_job_) {
    request.job = call.target;
  } else if (call.target.starts_with("hf:")) {
    request.overrides.push_back("--data.hf_dataset_name=" + call.target.substr(3));
  } else {
    request.overrides.push_back("--data.dataset_path=" + call.target);
  }
  loaded_ = config::load_or_fail(request, registries().catalog());
  if (!is_job_) {  // no model asks for a vocabulary; the files say what they are
    if (!given(*loaded_, "model.vocab_size")) {
      loaded_->config.model.vocab_size = std::numeric_limits<std::int32_t>::max();
    }
    if (!given(*loaded_, "data.file_pattern")) {
      loaded_->config.data.file_pattern.clear();
    }
  }
  session_.begin(loaded_->config);
}

std::vector<DataSource> data_sources(const config::Config& config, const Registries* registries, bool build) {
  std::vector<DataSource> out;
  const auto add = [&](SourceSpec spec, SourceOptions options) {
    options.build = build;
    for (const DataSource& other : out) {
      if (same(other.spec, spec) && same_text(other.options.read, options.read)) {
        return;
      }
    }
    out.push_back({std::move(spec), std::move(options)});
  };
  const config::DataConfig& data = config.data;
  for (std::size_t i = 0; i < data.datasets.size(); ++i) {
    if (data.datasets[i].dataset.empty()) {
      add(mixture_source(config, i), mixture_options(config, registries, i));
    }
  }
  if (data.datasets.empty() && (!data.dataset_path.empty() || data.hf_dataset_name)) {
    add(training_source(config), source_options(config, registries));
  }
  const config::EvalConfig& eval = config.eval;
  for (std::size_t i = 0; eval.enabled && i < eval.datasets.size(); ++i) {
    if (eval.datasets[i].dataset.empty()) {
      add(evaluation_source(config, i), evaluation_options(config, registries, i));
    }
  }
  if (eval.enabled && eval.datasets.empty() && (!eval.dataset_path.empty() || eval.hf_dataset_name)) {
    add(evaluation_source(config), evaluation_options(config, registries));
  }
  return out;
}

void check_data(const config::Config& config) {
  bool text = false;
  for (const DataSource& source : data_sources(config, nullptr, false)) {
    if (source.spec.path.empty()) {
      continue;
    }
    const SourceFiles files = find_files(source.spec, config);
    text = text || !files.tokens;
    for (const SourceFile& file : files.files) {
      if (files.tokens) {
        TokenFile(file.path, {source.options.token_type, source.options.vocab_size});
      }
    }
  }
  if (text && !config.data.tokenizer_path.starts_with("lua:")) {
    const std::unique_ptr<Tokenizer> tokenizer = make_tokenizer(config, nullptr);
    if (!config.data.chat_template.empty()) {
      make_chat_format(config.data, tokenizer.get());  // the template is there, and is understood
    }
  }
}

std::vector<DataSource> DataJob::sources(bool build) const {
  std::vector<DataSource> out = data_sources(loaded_->config, &registries(), build);
  KF_CHECK(!out.empty(), Code::data, "the job names no data: set data.dataset_path, data.datasets or data.hf_dataset_name");
  return out;
}

}  // namespace kf
