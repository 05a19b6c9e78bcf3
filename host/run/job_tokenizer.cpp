#include "run/job_tokenizer.h"

#include <algorithm>
#include <string>

#include "core/fs.h"

namespace kf {
namespace {

/// Whether a path is token files: a file by its own name, a folder by the pattern of its files. (Data sets of the hub have no path.)
bool names_tokens(const std::string& path, const std::string& pattern) {
  const auto is_token_name = [](const std::string& name) { return name.ends_with(".npy") || name.ends_with(".bin"); };
  std::error_code ignored;
  const bool file = fs::path(path).has_extension() && !fs::is_directory(path, ignored);
  return is_token_name(path) || (!file && !path.empty() && is_token_name(pattern));
}

bool reads_only_tokens(const config::DataConfig& data) {
  if (data.datasets.empty()) {
    return !data.dataset_path.empty() && names_tokens(data.dataset_path, data.file_pattern);
  }
  return std::all_of(data.datasets.begin(), data.datasets.end(), [&](const config::DatasetSource& source) {
    return !source.dataset.empty() ||
           names_tokens(source.path, source.file_pattern.value_or(data.file_pattern));  // data sets in Lua give ids
  });
}

}  // namespace

std::unique_ptr<Tokenizer> tokenizer_of(const config::Config& config, const Registries& registries) {
  const config::DataConfig& d = config.data;
  const bool tokens = reads_only_tokens(d);
  if (d.tokenizer_path.empty() && (tokens || config.model.vocab_size < kByteVocab)) {
    return nullptr;
  }
  return make_tokenizer(config, &registries);
}

bool reads_text(const config::EvalConfig& eval) {
  if (eval.datasets.empty()) {
    return !names_tokens(eval.dataset_path, eval.file_pattern);
  }
  return std::any_of(eval.datasets.begin(), eval.datasets.end(), [&](const config::EvalDataset& set) {
    return set.dataset.empty() && !names_tokens(set.path, set.file_pattern.value_or(eval.file_pattern));
  });
}

}  // namespace kf
