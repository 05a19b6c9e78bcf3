#include "data/source/source.h"

#include <algorithm>

#include "config/schema/config.h"
#include "core/digest.h"
#include "core/error.h"
#include "core/log.h"
#include "core/text.h"
#include "data/cache/cache.h"
#include "data/file/megatron.h"
#include "data/read/settings.h"
#include "data/sequence/packed_dataset.h"
#include "data/sequence/stream_dataset.h"
#include "data/sequence/token_dataset.h"
#include "data/sequence/token_documents.h"
#include "data/source/id_check.h"
#include "data/source/tokenized_text.h"

namespace kf {
namespace {

/// The first ones of another data set.
class FirstWindows final : public Dataset {
 public:
  FirstWindows(std::unique_ptr<Dataset> data, std::int64_t most) : data_(std::move(data)), size_(std::min(most, data_->size())) {}
  std::int64_t size() const override { return size_; }
  std::int64_t inputs(std::int64_t index, std::int64_t seq_len) const override { return data_->inputs(index, seq_len); }
  void get(std::int64_t index, std::span<std::int64_t> window) const override {
    KF_CHECK(index >= 0 && index < size_, Code::data, "sample {} asked for, there are {}", index, size_);
    data_->get(index, window);
  }
  std::string describe() const override { return format("the first {} windows of {}", grouped(size_), data_->describe()); }
  std::string fingerprint() const override {
    Digest digest;
    digest.add(data_->fingerprint());
    digest.add(to_text(size_));
    return digest.hex();
  }

 private:
  std::unique_ptr<Dataset> data_;
  std::int64_t size_;
};

bool packs_documents(const SourceOptions& options) { return options.config->data.pack_method != "concat"; }

/// Documents packed, or as windows of one stream.
std::unique_ptr<Dataset> sequences_of(const DocumentsPtr& documents, const SourceOptions& options, const std::string& what) {
  if (!packs_documents(options)) {
    return std::make_unique<StreamDataset>(documents, options.window, what, options.windows);
  }
  const config::DataConfig& data = options.config->data;
  PackOptions how;
  how.seq_len = options.window - 1;
  how.fit = fit_named(data.pack_method);
  how.max_segments = data.max_segments;
  how.truncate = data.long_documents == "truncate";
  return std::make_unique<PackedDataset>(documents, how);
}

/// Keys about text that were set and mean nothing here.
void warn_of_text_keys(const SourceSpec& spec, const config::DataConfig& data) {
  std::vector<std::string> keys;
  const auto note = [&](bool set, const char* key) {
    if (set) {
      keys.emplace_back(key);
    }
  };
  note(!data.text_template.empty(), "data.text_template");
  note(!data.messages_field.empty(), "data.messages_field");
  note(!data.completion_field.empty(), "data.completion_field");
  note(data.loss_on == "answers", "data.loss_on");
  note(data.special_tokens != "text", "data.special_tokens");
  note(data.add_bos, "data.add_bos");
  note(!data.add_eos, "data.add_eos");
  if (!keys.empty()) {
    log::warn("{} = {} holds token files, which are read as they are: {} have no effect on them", spec.path_key, kf::quoted(spec.path),
              join(keys, ", "));
  }
}

/// data.eos_id; nothing where every file has an index that says where documents begin.
std::optional<std::int64_t> end_of_documents(const std::vector<fs::path>& paths, const SourceSpec& spec, const SourceOptions& options) {
  const config::DataConfig& data = options.config->data;
  const bool indexed = std::all_of(paths.begin(), paths.end(), [](const fs::path& path) { return has_megatron_index(path); });
  KF_CHECK(data.eos_id || indexed, Code::data,
           "data.pack_method = \"{}\" needs data.eos_id, the id that ends a document: token files do not say which it is ({} = \"{}\")",
           data.pack_method, spec.path_key, spec.path);
  return data.eos_id;
}

/// data.check_ids. `known`: files without an index have been read whole already, to find where documents end.
void check_before_start(const std::vector<TokenFile>& all, bool known, const config::Config& config) {
  std::vector<const TokenFile*> files;
  for (const TokenFile& file : all) {
    if (!known || has_megatron_index(file.path())) {
      files.push_back(&file);
    }
  }
  if (config.data.check_ids != "off") {
    IdCheckOptions check;
    check.all = config.data.check_ids == "all";
    check.memo_dir = cache::cache_folder(config.data.cache_dir).string();
    check_ids(files, check);
  }
}

OpenSource open_tokens(const SourceFiles& found, const SourceSpec& spec, const SourceOptions& options, const HoldOut& part) {
  KF_CHECK(
      part.holdout == 0, Code::data,
      "data.holdout = {} keeps documents of text for evaluation, but {} = \"{}\" holds token files, which have none; set data.holdout = 0 "
      "and give eval.dataset_path",
      part.holdout, spec.path_key, spec.path);
  KF_CHECK(spec.transforms.empty(), Code::data,
           "{} = \"{}\" holds token files, and transforms work on documents of text; leave transforms = [\"{}\"] out", spec.path_key,
           spec.path, spec.transforms.front());
  KF_CHECK(spec.max_documents == 0, Code::data,
           "{}.max_documents = {} counts documents of text, but {} = \"{}\" holds token files; use {}.max_tokens", spec.limit_key,
           spec.max_documents, spec.path_key, spec.path, spec.limit_key);
  warn_of_text_keys(spec, options.config->data);
  std::vector<fs::path> paths;
  for (const SourceFile& file : found.files) {
    paths.push_back(file.path);
  }
  const TokenFileOptions file_options{options.token_type, options.vocab_size};
  if (packs_documents(options)) {
    const auto tokens = std::make_shared<const TokenDocuments>(paths, found.root, end_of_documents(paths, spec, options), file_options);
    check_before_start(tokens->files(), true, *options.config);
    DocumentsPtr documents = tokens;
    documents = first_documents(std::move(documents), 0, spec.max_tokens, options.window, spec.limit_key + ".max_tokens");
    return {sequences_of(documents, options, spec.path_key), false, std::nullopt, documents, sampled_prints(found)};
  }
  auto data = std::make_unique<TokenDataset>(paths, found.root, options.window, file_options, options.windows);
  check_before_start(data->files(), false, *options.config);
  if (spec.max_tokens == 0) {
    return {std::move(data), false, std::nullopt, {}, sampled_prints(found)};
  }
  KF_CHECK(spec.max_tokens >= options.window, Code::data, "{}.max_tokens = {} is less than a window of {} (train.seq_len + 1)",
           spec.limit_key, spec.max_tokens, options.window);
  return {
      std::make_unique<FirstWindows>(std::move(data), spec.max_tokens / options.window), false, std::nullopt, {}, sampled_prints(found)};
}

OpenSource open_text(const SourceFiles& found, const SourceSpec& spec, const SourceOptions& options, const HoldOut& part) {
  TokenizedText text = open_tokenized_text(found, spec, options);
  if (part.holdout > 0) {
    text.documents = take_side(std::move(text.documents), part.holdout, part.side, options.window);
  }
  const std::string what = spec.path_key + " = " + kf::quoted(spec.path.empty() ? spec.hf_name : spec.path);
  return {sequences_of(text.documents, options, what), true, text.eos, text.documents, std::move(text.prints)};
}

/// A source without a path is the data set `name` of the hub, where it has one; `key` said so.
void take_from_hub(SourceSpec& spec, std::string key, const std::string& name, const std::string& configuration) {
  if (spec.path.empty() && !name.empty()) {
    spec.path_key = std::move(key);
    spec.hf_name = name;
    spec.hf_config = configuration;
  }
}

}  // namespace

SourceOptions source_options(const config::Config& config, const Registries* registries) {
  SourceOptions options;
  options.config = &config;
  options.registries = registries;
  options.window = config.train.seq_len + 1;
  options.vocab_size = config.model.vocab_size;
  options.read = read_options(config.data);
  if (config.data.token_dtype) {
    options.token_type = token_type_named(*config.data.token_dtype);
  }
  return options;
}

SourceOptions mixture_options(const config::Config& config, const Registries* registries, std::size_t i) {
  SourceOptions options = source_options(config, registries);
  options.read = read_options(config.data, i);
  return options;
}

Windows evaluation_windows(std::int64_t steps) { return steps < 0 ? Windows::all : Windows::apart; }

SourceOptions evaluation_options(const config::Config& config, const Registries* registries) {
  SourceOptions options = source_options(config, registries);
  options.windows = evaluation_windows(config.eval.steps);
  return options;
}

SourceOptions evaluation_options(const config::Config& config, const Registries* registries, std::size_t i) {
  SourceOptions options = source_options(config, registries);
  options.windows = evaluation_windows(config.eval.datasets[i].steps.value_or(config.eval.steps));
  options.read = read_options_of_evaluation(config, i);
  return options;
}

SourceSpec training_source(const config::Config& config) {
  const config::DataConfig& d = config.data;
  SourceSpec spec{d.dataset_path, d.file_pattern, "data.dataset_path", "data.file_pattern", {}};
  take_from_hub(spec, "data.hf_dataset_name", d.hf_dataset_name.value_or(""), d.hf_dataset_config.value_or(""));
  spec.hf_split = d.hf_dataset_split;
  spec.max_documents = d.max_documents;
  spec.max_tokens = d.max_tokens;
  return spec;
}

SourceSpec mixture_source(const config::Config& config, std::size_t i) {
  const config::DatasetSource& source = config.data.datasets[i];
  const std::string key = format("data.datasets[{}]", i);
  SourceSpec spec{source.path, source.file_pattern.value_or(config.data.file_pattern), key + ".path",
                  source.file_pattern ? key + ".file_pattern" : "data.file_pattern", source.transforms};
  take_from_hub(spec, key + ".hf_name", source.hf_name, source.hf_config);
  spec.hf_split = source.hf_split.value_or(config.data.hf_dataset_split);
  spec.max_documents = source.max_documents;
  spec.max_tokens = source.max_tokens;
  spec.limit_key = key;
  return spec;
}

SourceSpec evaluation_source(const config::Config& config) {
  const config::EvalConfig& e = config.eval;
  SourceSpec spec{e.dataset_path, e.file_pattern, "eval.dataset_path", "eval.file_pattern", {}};
  take_from_hub(spec, "eval.hf_dataset_name", e.hf_dataset_name.value_or(""), e.hf_dataset_config.value_or(""));
  spec.hf_split = e.hf_dataset_split;
  return spec;
}

SourceSpec evaluation_source(const config::Config& config, std::size_t i) {
  const config::EvalDataset& set = config.eval.datasets[i];
  const std::string key = format("eval.datasets[{}]", i);
  SourceSpec spec{set.path,
                  set.file_pattern.value_or(config.eval.file_pattern),
                  key + ".path",
                  set.file_pattern ? key + ".file_pattern" : "eval.file_pattern",
                  {}};
  take_from_hub(spec, key + ".hf_name", set.hf_name, set.hf_config);
  spec.hf_split = set.hf_split;
  return spec;
}

SourceFiles find_files(const SourceSpec& spec, const config::Config& config) {
  SourceRequest request;
  if (!spec.path.empty()) {
    request.paths = {spec.path};
  }
  request.hf_name = spec.hf_name;
  request.hf_config = spec.hf_config;
  request.hf_split = spec.hf_split;
  request.hf_revision = config.data.hf_dataset_revision;
  request.hf_streaming = config.data.hf_streaming;
  request.pattern = spec.pattern;
  request.path_key = spec.path_key;
  request.pattern_key = spec.pattern_key;
  return resolve_source(request);
}

OpenSource open_source(const SourceSpec& spec, const SourceOptions& given, const HoldOut& part) {
  SourceOptions options = given;
  if (part.holdout > 0 && part.side == Side::held_out) {
    options.windows = evaluation_windows(options.config->eval.steps);
  }
  const SourceFiles found = find_files(spec, *options.config);
  return found.tokens ? open_tokens(found, spec, options, part) : open_text(found, spec, options, part);
}

}  // namespace kf
