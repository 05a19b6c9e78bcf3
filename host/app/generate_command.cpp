#include <ATen/Context.h>

#include <algorithm>
#include <charconv>
#include <iostream>

#include "app/commands.h"
#include "app/device.h"
#include "app/inference.h"
#include "core/error.h"
#include "train/generate.h"

namespace kf {
namespace {

constexpr const char* kUsage =
    "usage: kf-host generate CHECKPOINT --prompt TEXT [options]\n\n"
    "Continues TEXT with the model of a checkpoint: a step_N folder, or a run folder (its latest checkpoint).\n\n"
    "  --prompt TEXT         what to continue; \"\" starts a document\n"
    "  --max-new-tokens N    length of the answer (default: generate.max_new_tokens of the job)\n"
    "  --temperature T       0 always takes the likeliest token (default: generate.temperature)\n"
    "  --top-k K             draw from the K likeliest only (default: generate.top_k)\n"
    "  --top-p P             draw from the likeliest with mass P only (default: generate.top_p)\n"
    "  --seed N              of the draws (default 0)\n"
    "  --device D            auto, cpu or cuda (default auto)\n";

template <class T>
T number(const std::string& option, const std::string& text, double low, double high) {
  T value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  KF_CHECK(error == std::errc() && end == text.data() + text.size(), Code::config, "{}: '{}' is not a number", option, text);
  KF_CHECK(static_cast<double>(value) >= low && static_cast<double>(value) <= high, Code::config, "{}: {} is not between {} and {}", option,
           value, low, high);
  return value;
}

struct GenerateArguments {
  std::string checkpoint;
  std::string prompt;
  bool has_prompt = false;
  std::string device = "auto";
  std::vector<std::pair<std::string, std::string>> options;  // in order, checked
};

/// Sets one option of the text; false for another name.
bool set_text_option(GenerateOptions& out, const std::string& name, const std::string& value) {
  if (name == "--max-new-tokens") {
    out.max_new_tokens = number<std::int64_t>(name, value, 0, 1e9);
  } else if (name == "--temperature") {
    out.temperature = number<double>(name, value, 0, 1e6);
  } else if (name == "--top-k") {
    out.top_k = number<std::int64_t>(name, value, 0, 1e9);
  } else if (name == "--top-p") {
    out.top_p = number<double>(name, value, 0, 1);
  } else if (name == "--seed") {
    out.seed = number<std::uint64_t>(name, value, 0, 1.8e19);
  } else {
    return false;
  }
  return true;
}

void set_option(GenerateArguments& out, const std::string& name, const std::string& value) {
  GenerateOptions checked;
  if (set_text_option(checked, name, value)) {
    out.options.emplace_back(name, value);
  } else if (name == "--prompt") {
    out.prompt = value;
    out.has_prompt = true;
  } else if (name == "--device") {
    KF_CHECK(value == "auto" || value == "cpu" || value == "cuda", Code::config, "--device: '{}' is none of auto, cpu, cuda", value);
    out.device = value;
  } else {
    const std::vector<std::string> names{"--prompt", "--max-new-tokens", "--temperature", "--top-k", "--top-p", "--seed", "--device"};
    const std::string near = nearest(name, names);
    fail(Code::config, "kf-host generate has no option '{}'{}; have: {}", name, near.empty() ? "" : "; did you mean '" + near + "'?",
         join(names, ", "));
  }
}

GenerateArguments parse(const Arguments& args) {
  GenerateArguments out;
  for (std::size_t i = 0; i < args.size(); ++i) {
    if (args[i].rfind("--", 0) != 0) {
      KF_CHECK(out.checkpoint.empty(), Code::config, "one checkpoint at a time, got '{}' and '{}'", out.checkpoint, args[i]);
      out.checkpoint = args[i];
      continue;
    }
    if (const std::size_t equals = args[i].find('='); equals != std::string::npos) {
      set_option(out, args[i].substr(0, equals), args[i].substr(equals + 1));
    } else {
      KF_CHECK(i + 1 < args.size(), Code::config, "{} needs a value", args[i]);
      set_option(out, args[i], args[i + 1]);
      ++i;
    }
  }
  KF_CHECK(!out.checkpoint.empty(), Code::config, "no checkpoint was given\n{}", kUsage);
  KF_CHECK(out.has_prompt, Code::config, "no --prompt was given; --prompt \"\" starts a document");
  return out;
}

}  // namespace

int generate_command(const Arguments& args) {
  if (!args.empty() && (args[0] == "--help" || args[0] == "-h")) {
    std::cout << kUsage;
    return 0;
  }
  const GenerateArguments arguments = parse(args);
  const at::Device device = open_device(arguments.device).device;
  const LoadedModel loaded = load_for_inference(arguments.checkpoint, device);
  KF_CHECK(loaded.tokenizer != nullptr, Code::config,
           "the model of {} learned from token ids, and its job names no tokenizer for them (data.tokenizer_path)", arguments.checkpoint);
  GenerateOptions options = generate_options(loaded.config.generate);
  options.strategy = loaded.sampler.get();
  for (const auto& [name, value] : arguments.options) {
    set_text_option(options, name, value);
  }
  const bool asked = std::any_of(arguments.options.begin(), arguments.options.end(),
                                 [](const auto& option) { return option.first == "--max-new-tokens"; });
  const auto prompt_length = std::max<std::int64_t>(1, static_cast<std::int64_t>(loaded.tokenizer->encode(arguments.prompt).size()));
  const std::int64_t room = loaded.config.model.max_seq_len - prompt_length;
  KF_CHECK(room > 0, Code::config, "the prompt has {} tokens and leaves no room for an answer: the model takes {} (model.max_seq_len)",
           prompt_length, loaded.config.model.max_seq_len);
  if (!asked) {
    options.max_new_tokens = std::min(options.max_new_tokens, room);
  }
  KF_CHECK(options.max_new_tokens <= room, Code::config,
           "--max-new-tokens {} and a prompt of {} tokens exceed model.max_seq_len ({}); at most {} fit", options.max_new_tokens,
           prompt_length, loaded.config.model.max_seq_len, room);
  std::cout << arguments.prompt;
  generate_text(*loaded.model, *loaded.tokenizer, arguments.prompt, options, device,
                [](const std::string& text) { std::cout << text << std::flush; });
  std::cout << '\n';
  return 0;
}

}  // namespace kf
