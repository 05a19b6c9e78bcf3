#include "data/read/settings.h"

#include "config/config.h"
#include "core/text.h"

namespace kf {

SourceRequest source_request(const config::DataConfig& data) {
  SourceRequest request;
  if (!data.dataset_path.empty()) {
    request.paths = {data.dataset_path};
  }
  request.hf_name = data.hf_dataset_name.value_or("");
  request.hf_config = data.hf_dataset_config.value_or("");
  request.hf_split = data.hf_dataset_split;
  request.hf_revision = data.hf_dataset_revision;
  request.hf_streaming = data.hf_streaming;
  request.pattern = data.file_pattern;
  return request;
}

SourceRequest source_request(const config::DataConfig& data, std::size_t index) {
  const config::DatasetSource& source = data.datasets.at(index);
  SourceRequest request = source_request(data);
  request.paths.clear();
  if (!source.path.empty()) {
    request.paths = {source.path};
  }
  request.hf_name = source.hf_name;
  request.hf_config = source.hf_config;
  request.hf_split = source.hf_split.value_or(data.hf_dataset_split);
  request.pattern = source.file_pattern.value_or(data.file_pattern);
  const std::string key = format("data.datasets[{}].", index);
  request.path_key = key + "path";
  request.pattern_key = source.file_pattern ? key + "file_pattern" : "data.file_pattern";
  return request;
}

ReadOptions read_options(const config::DataConfig& data) {
  ReadOptions options;
  options.text_field = data.hf_dataset_text_field;
  options.text_template = data.text_template;
  options.messages_field = data.messages_field;
  options.message_format = data.message_format;
  options.answers_only = data.loss_on == "answers";
  options.skip_broken = data.on_error == "skip";
  options.max_record_bytes = static_cast<std::size_t>(data.max_record_bytes);
  return options;
}

ReadOptions read_options(const config::DataConfig& data, std::size_t index) {
  const config::DatasetSource& source = data.datasets.at(index);
  ReadOptions options = read_options(data);
  if (source.text_field) {
    options.text_field = *source.text_field;
    options.text_field_key = format("data.datasets[{}].text_field", index);
  }
  return options;
}

}  // namespace kf
