#include "data/read/settings.h"

#include "config/schema/config.h"
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

namespace {

/// What says which text a record has: [data]'s keys, or a source's own.
struct TextKeys {
  std::string text_field, text_template, messages_field, prompt_field, prompt_template, completion_field;
};

ReadOptions with(const config::DataConfig& data, const TextKeys& keys, const std::string& loss_on) {
  ReadOptions options;
  options.text_field = keys.text_field;
  options.text_template = keys.text_template;
  options.messages_field = keys.messages_field;
  options.prompt_field = keys.prompt_field;
  options.prompt_template = keys.prompt_template;
  options.completion_field = keys.completion_field;
  options.role_field = data.role_field;
  options.content_field = data.content_field;
  options.message_format = data.message_format;
  options.tools_field = data.tools_field;
  options.prompt_as_chat = data.prompt_as_chat;
  options.answers_only = loss_on == "answers" || (loss_on == "auto" && !keys.completion_field.empty());
  options.skip_broken = data.on_error == "skip";
  options.max_record_bytes = static_cast<std::size_t>(data.max_record_bytes);
  return options;
}

TextKeys keys_of(const config::DataConfig& data) {
  return {data.hf_dataset_text_field, data.text_template,   data.messages_field,
          data.prompt_field,          data.prompt_template, data.completion_field};
}

}  // namespace

ReadOptions read_options(const config::DataConfig& data) { return with(data, keys_of(data), data.loss_on); }

ReadOptions read_options(const config::DataConfig& data, std::size_t index) {
  const config::DatasetSource& source = data.datasets.at(index);
  const bool own = source.text_field || source.text_template || source.messages_field || source.prompt_field || source.prompt_template ||
                   source.completion_field;
  TextKeys keys = keys_of(data);
  if (own) {
    keys = {source.text_field.value_or(data.hf_dataset_text_field),
            source.text_template.value_or(""),
            source.messages_field.value_or(""),
            source.prompt_field.value_or(""),
            source.prompt_template.value_or(""),
            source.completion_field.value_or("")};
  }
  const bool no_answers = keys.messages_field.empty() && keys.completion_field.empty();
  const bool inherited = own && no_answers && !source.loss_on;  // plain text beside chats counts as a whole
  ReadOptions options = with(data, keys, inherited ? "all" : source.loss_on.value_or(data.loss_on));
  if (source.text_field) {
    options.text_field_key = format("data.datasets[{}].text_field", index);
  }
  return options;
}

ReadOptions read_options_of_evaluation(const config::Config& config, std::size_t index) {
  const std::optional<std::string>& field = config.eval.datasets.at(index).text_field;
  if (!field) {
    return read_options(config.data);
  }
  TextKeys keys;
  keys.text_field = *field;
  ReadOptions options = with(config.data, keys, "all");
  options.text_field_key = format("eval.datasets[{}].text_field", index);
  return options;
}

bool writes_chats(const ReadOptions& options) {
  return !options.messages_field.empty() || (!options.completion_field.empty() && options.prompt_as_chat);
}

}  // namespace kf
