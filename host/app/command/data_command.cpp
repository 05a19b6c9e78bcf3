#include <algorithm>
#include <iostream>

#include "app/command/commands.h"
#include "app/command/data_commands.h"
#include "app/help/usage.h"
#include "app/script/unused_settings.h"
#include "builtins/builtins.h"
#include "config/load/layers.h"
#include "config/load/load.h"
#include "config/tree/json.h"
#include "core/error.h"
#include "core/log.h"
#include "core/text.h"
#include "data/chat/chat_format.h"
#include "data/hub/model.h"
#include "data/read/info.h"
#include "data/read/settings.h"
#include "data/tokenizer/tokenizer.h"
#include "registry/registries.h"

namespace kf {
namespace {

struct InfoCall {
  std::string path;
  std::string format = "text";
  std::vector<std::string> overrides;
};

InfoCall parse_info(const Arguments& args) {
  InfoCall call;
  for (std::size_t i = 1; i < args.size(); ++i) {
    const std::string& arg = args[i];
    if (arg == "--format" || arg.starts_with("--format=")) {
      KF_CHECK(arg != "--format" || i + 1 < args.size(), Code::config, "--format needs a value: text or json");
      call.format = arg == "--format" ? args[++i] : arg.substr(9);
    } else if (arg.starts_with("--")) {
      call.overrides.push_back(arg);
    } else {
      KF_CHECK(call.path.empty(), Code::config, "one PATH at a time: {} and {}; a glob in quotes takes several files", call.path, arg);
      call.path = arg;
    }
  }
  KF_CHECK(!call.path.empty(), Code::config, "which data? {}", usage::kDataInfo);
  KF_CHECK(call.format == "text" || call.format == "json", Code::config, "--format {}: must be text or json", call.format);
  return call;
}

/// One source to look at, and its name for people.
struct Asked {
  std::string name;
  SourceRequest request;
  ReadOptions options;
};

config::Loaded load_settings(const InfoCall& call, bool job) {
  warn_unused_settings(call.overrides, SettingsUse::data);
  config::Request request;
  request.overrides = call.overrides;
  request.files_must_exist = false;
  if (job) {
    request.job = call.path;
  }
  return config::load_or_fail(request, native_registries().catalog());
}

bool given(const config::Loaded& loaded, const char* key) { return config::find_node(loaded.merged, key) != nullptr; }

std::vector<Asked> sources_of_job(const config::DataConfig& data, const std::string& path) {
  std::vector<Asked> out;
  for (std::size_t i = 0; i < data.datasets.size(); ++i) {
    const config::DatasetSource& source = data.datasets[i];
    KF_CHECK(source.dataset.empty(), Code::data, "{}: data.datasets[{}] is the registered dataset {}, which has no files", path, i,
             source.dataset);
    const std::string name = !source.name.empty() ? source.name : !source.path.empty() ? source.path : "hf:" + source.hf_name;
    out.push_back({name, source_request(data, i), read_options(data, i)});
  }
  if (out.empty()) {
    KF_CHECK(!data.dataset_path.empty() || data.hf_dataset_name, Code::data, "{} names no data: set data.dataset_path", path);
    out.push_back(
        {data.dataset_path.empty() ? "hf:" + *data.hf_dataset_name : data.dataset_path, source_request(data), read_options(data)});
  }
  return out;
}

std::vector<Asked> sources_of(const InfoCall& call, const config::Loaded& loaded, bool job) {
  const config::DataConfig& data = loaded.config.data;
  if (job) {
    return sources_of_job(data, call.path);
  }
  SourceRequest request = source_request(data);
  request.paths.clear();
  request.path_key = "PATH";
  if (call.path.starts_with("hf:")) {
    request.hf_name = call.path.substr(3);
  } else {
    request.hf_name.clear();
    request.paths = {call.path};
  }
  if (!given(loaded, "data.file_pattern")) {
    request.pattern.clear();  // every file whose name says data
  }
  return {{call.path, std::move(request), read_options(data)}};
}

/// A chat that nobody named: read as one, and said so.
void notice_chat(const SourceFiles& source, const config::Loaded& loaded, ReadOptions& options) {
  if (!options.messages_field.empty() || !options.text_template.empty() || !options.completion_field.empty() ||
      given(loaded, "data.hf_dataset_text_field")) {
    return;
  }
  Record record;
  const auto readable = [&](const ReadOptions& tried) {
    try {
      Skipped skipped;
      return open_records(source.files.front(), {}, tried, skipped)->next(record);
    } catch (const Error&) {
      return false;
    }
  };
  if (readable(options)) {
    return;
  }
  for (const char* field : {"messages", "conversations"}) {
    ReadOptions chat = options;
    chat.messages_field = field;
    if (readable(chat)) {
      log::info("the records hold chats: read with data.messages_field = \"{}\", which a job must say itself", field);
      options = chat;
      return;
    }
  }
}

SourceInfo inspect(const Asked& asked, const config::Loaded& loaded) {
  const SourceFiles source = resolve_source(asked.request);
  if (source.tokens) {
    TokenInfoOptions options;
    options.eos_id = loaded.config.data.eos_id;
    options.vocab_size = loaded.config.model.vocab_size;
    if (loaded.config.data.token_dtype) {
      options.file.raw_type = token_type_named(*loaded.config.data.token_dtype);
    }
    if (given(loaded, "model.vocab_size")) {
      options.file.vocab_size = loaded.config.model.vocab_size;
    }
    return inspect_tokens(source, options);
  }
  ReadOptions options = asked.options;
  const config::DataConfig& data = loaded.config.data;
  if (!options.messages_field.empty() || !options.completion_field.empty()) {
    const bool file = !data.tokenizer_path.empty() && !data.tokenizer_path.starts_with("lua:");
    const std::unique_ptr<Tokenizer> tokenizer = file && !data.chat_template.empty() ? open_named_tokenizer(data.tokenizer_path) : nullptr;
    options.chat = make_chat_format(data, tokenizer.get());
  }
  notice_chat(source, loaded, options);
  return inspect_text(source, options);
}

using config::Node;
using config::Table;

Node to_node(const SourceInfo& info) {
  Table out;
  out["source"] = Node(info.name);
  out["kind"] = Node(std::string(info.tokens ? "tokens" : "text"));
  out["files"] = Node(info.files);
  out["file_bytes"] = Node(info.file_bytes);
  out["documents"] = info.documents ? Node(*info.documents) : Node();
  if (info.tokens) {
    out["tokens"] = Node(info.ids);
    out["dtype"] = Node(info.dtype);
  } else {
    out["characters"] = Node(info.characters);
    out["bytes"] = Node(info.bytes);
    out["skipped"] = Node(info.skipped);
  }
  out["sha256"] = Node(info.sha256);
  return Node(std::move(out));
}

void print_text(const SourceInfo& info) {
  std::cout << "source      " << info.name << "\n"
            << "files       " << grouped(info.files) << " (" << human_bytes(static_cast<double>(info.file_bytes)) << ")\n"
            << "documents   " << (info.documents ? grouped(*info.documents) : "not known: set data.eos_id") << "\n";
  if (info.tokens) {
    std::cout << "tokens      " << grouped(info.ids) << " (" << info.dtype << ")\n";
  } else {
    std::cout << "characters  " << grouped(info.characters) << "\n"
              << "bytes       " << grouped(info.bytes) << "\n";
    if (info.skipped > 0) {
      std::cout << "left out    " << grouped(info.skipped) << " broken records\n";
    }
  }
  std::cout << "sha256      " << info.sha256 << "\n";
}

int info_command(const Arguments& args) {
  const InfoCall call = parse_info(args);
  const bool job = call.path.ends_with(".toml");
  const config::Loaded loaded = load_settings(call, job);
  std::vector<SourceInfo> all;
  for (const Asked& asked : sources_of(call, loaded, job)) {
    all.push_back(inspect(asked, loaded));
    all.back().name = asked.name;
  }
  if (call.format == "text") {
    std::for_each(all.begin(), all.end(), print_text);
  } else if (all.size() == 1) {
    std::cout << config::to_json(to_node(all[0])) << "\n";
  } else {
    config::Array sources;
    std::transform(all.begin(), all.end(), std::back_inserter(sources), to_node);
    Table out;
    out["sources"] = Node(std::move(sources));
    std::cout << config::to_json(Node(std::move(out))) << "\n";
  }
  return 0;
}

}  // namespace

int data_command(const Arguments& args) {
  KF_CHECK(!args.empty(), Code::config, "{}", usage::kData);
  constexpr std::pair<const char*, int (*)(const Arguments&)> commands[] = {
      {"build", data_build}, {"cache", data_cache}, {"peek", data_peek}, {"verify", data_verify}, {"stats", data_stats}};
  for (const auto& [name, run] : commands) {
    if (args[0] == name) {
      return run({args.begin() + 1, args.end()});
    }
  }
  const std::string near = nearest(args[0], {"info", "build", "cache", "peek", "verify", "stats"});
  KF_CHECK(args[0] == "info", Code::config, "data has no command '{}'{}; have: info, build, cache, peek, verify, stats", args[0],
           near.empty() ? "" : "; did you mean '" + near + "'?");
  return info_command(args);
}

}  // namespace kf
