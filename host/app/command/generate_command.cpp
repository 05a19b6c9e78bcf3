#include <algorithm>
#include <chrono>
#include <iostream>

#include "app/command/commands.h"
#include "app/command/prompts.h"
#include "app/help/usage.h"
#include "app/line/option_list.h"
#include "app/script/inference.h"
#include "config/tree/finite.h"
#include "config/tree/json.h"
#include "core/error.h"
#include "core/log.h"
#include "generate/answer_stream.h"
#include "generate/chat_prompts.h"
#include "generate/generate.h"
#include "kernels/product/products_scope.h"
#include "run/device.h"
#include "run/memory_check.h"
#include "run/run_parts.h"

namespace kf {
namespace {

const OptionNames kNames{
    "kf-host generate",
    {"--prompt", "--prompts", "--system", "--max-new-tokens", "--temperature", "--top-k", "--top-p", "--min-p", "--repetition-penalty",
     "--stop", "--stop-id", "--seed", "--batch-size", "--format", "--script", "--tokenizer", "--weights", "--device", "--memory-check"},
    {"--logprobs", "--chat"},
    false};

void set_option(GenerateOptions& out, const std::string& name, const std::string& value) {
  if (name == "--max-new-tokens") {
    out.max_new_tokens = option_number<std::int64_t>(name, value, 0, 1e9);
    out.shorten = false;
  } else if (name == "--temperature") {
    out.temperature = option_number<double>(name, value, 0, 1e300);
  } else if (name == "--top-k") {
    out.top_k = option_number<std::int64_t>(name, value, 0, 1e9);
  } else if (name == "--top-p") {
    out.top_p = option_number<double>(name, value, 0, 1);
  } else if (name == "--min-p") {
    out.min_p = option_number<double>(name, value, 0, 1);
  } else if (name == "--repetition-penalty") {
    out.repetition_penalty = option_number<double>(name, value, 1e-6, 1e6);
  } else if (name == "--seed") {
    out.seed = option_number<std::uint64_t>(name, value, 0, 1.8e19);
  } else if (name == "--stop") {
    KF_CHECK(!value.empty(), Code::config, "--stop: an empty text would end every answer at once");
    out.stop.push_back(value);
  } else if (name == "--stop-id") {
    out.stop_ids.push_back(option_number<std::int64_t>(name, value, 0, 1e9));
  }
}

/// The job's options under those of the command line; the first --stop replaces the job's, and so does the first --stop-id.
GenerateOptions merged(GenerateOptions options, const OptionList& list) {
  if (list.has("--stop")) {
    options.stop.clear();
  }
  if (list.has("--stop-id")) {
    options.stop_ids.clear();
  }
  for (const auto& [name, value] : list.options) {
    set_option(options, name, value);
  }
  return options;
}

struct GenerateArguments {
  OptionList list;
  std::vector<GivenPrompt> prompts;
  bool json = false;
};

GenerateArguments parse(const Arguments& args) {
  GenerateArguments out;
  out.list = parse_options(args, kNames);
  GenerateOptions checked;
  merged(checked, out.list);  // before anything is loaded
  KF_CHECK(!out.list.words.empty(), Code::config, "no checkpoint was given\n{}", usage::kGenerate);
  KF_CHECK(out.list.words.size() == 1, Code::config, "one checkpoint at a time, got '{}' and '{}'", out.list.words[0], out.list.words[1]);
  KF_CHECK(out.list.has("--prompt") != out.list.has("--prompts"), Code::config,
           "give either --prompt or --prompts; --prompt \"\" starts a document");
  const std::string format = out.list.has("--format") ? out.list.last("--format") : "text";
  check_word("--format", format, {"text", "json"});
  out.json = format == "json";
  KF_CHECK(out.json || !out.list.has("--logprobs"), Code::config, "--logprobs needs --format json");
  if (out.list.has("--prompts")) {
    out.prompts = read_prompts(out.list.last("--prompts"));
  }
  for (const auto& [name, value] : out.list.options) {
    if (name == "--prompt") {
      out.prompts.push_back({value, {}});
    }
  }
  KF_CHECK(out.list.has("--chat") || !out.list.has("--system"), Code::config,
           "--system TEXT is what the system says in a chat: add --chat");
  for (GivenPrompt& prompt : out.prompts) {
    if (out.list.has("--chat") && prompt.ids.empty() && prompt.chat.empty()) {
      prompt.chat = ChatPrompts::of_user(out.list.last("--system"), valid_utf8(prompt.text));
    }
  }
  return out;
}

/// The ids of each prompt; those given as ids must be the model's.
std::vector<std::vector<std::int64_t>> encode(const std::vector<GivenPrompt>& prompts, const LoadedModel& loaded,
                                              const ChatPrompts* chats) {
  std::vector<std::vector<std::int64_t>> out;
  for (std::size_t i = 0; i < prompts.size(); ++i) {
    if (!prompts[i].ids.empty()) {
      const std::int64_t largest = *std::max_element(prompts[i].ids.begin(), prompts[i].ids.end());
      KF_CHECK(largest < loaded.config.model.vocab_size, Code::data, "prompt {} has the id {}, and the model's end at {}", i + 1, largest,
               loaded.config.model.vocab_size - 1);
      out.push_back(prompts[i].ids);
      continue;
    }
    KF_CHECK(
        loaded.tokenizer != nullptr, Code::config,
        "nothing turns text into ids for the model of {}: its job names no tokenizer (data.tokenizer_path); give --tokenizer, or prompts "
        "as {\"ids\": [1, 2]}",
        loaded.path);
    out.push_back(prompts[i].chat.empty() ? prompt_ids(*loaded.tokenizer, prompts[i].text, loaded.prompts)
                                          : chats->ids(prompts[i].chat, format("prompt {}", i + 1), loaded.prompts.bos));
  }
  return out;
}

/// How chats are written, where there is one among the prompts.
std::unique_ptr<const ChatPrompts> open_chats(const std::vector<GivenPrompt>& prompts, const LoadedModel& loaded) {
  if (loaded.tokenizer == nullptr ||
      std::all_of(prompts.begin(), prompts.end(), [](const GivenPrompt& each) { return each.chat.empty(); })) {
    return nullptr;
  }
  auto out = std::make_unique<const ChatPrompts>(loaded.config.data, *loaded.tokenizer, loaded.prompts.as_its_file_says);
  log::info("chats by {}", out->describe());
  return out;
}

void print_json(const GivenPrompt& prompt, const Completion& answer, bool with_text, bool with_logprobs) {
  config::Table row;
  if (prompt.ids.empty() && (prompt.chat.empty() || !prompt.text.empty())) {
    row["prompt"] = config::Node(valid_utf8(prompt.text));
  }
  if (with_text) {
    row["text"] = config::Node(valid_utf8(answer.text));
  }
  config::Array ids;
  config::Array logprobs;
  for (std::size_t i = 0; i < answer.ids.size(); ++i) {
    ids.emplace_back(answer.ids[i]);
    logprobs.emplace_back(answer.logprobs[i]);
  }
  row["ids"] = config::Node(std::move(ids));
  if (with_logprobs) {
    row["logprobs"] = config::Node(std::move(logprobs));
  }
  row["stopped"] = config::Node(std::string(end_name(answer.end)));
  row["prompt_tokens"] = config::Node(answer.prompt_tokens);
  std::cout << config::to_json(config::with_finite_numbers(config::Node(std::move(row)))) << '\n';
}

std::string ids_text(const std::vector<std::int64_t>& ids) {
  std::vector<std::string> words;
  for (const std::int64_t id : ids) {
    words.push_back(std::to_string(id));
  }
  return join(words, " ");
}

/// What is printed before an answer: the text that it goes on from; in a chat an answer stands alone.
std::string before_answer(const GivenPrompt& prompt) { return prompt.chat.empty() ? valid_utf8(prompt.text) : ""; }

/// Prompt and answer, or the ids of the answer where nothing makes text of them.
void print_text(const GivenPrompt& prompt, const Completion& answer, bool with_text) {
  std::cout << before_answer(prompt) << (with_text ? valid_utf8(answer.text) : ids_text(answer.ids)) << '\n';
}

void say_speed(const std::vector<Completion>& answers, double seconds) {
  std::int64_t tokens = 0;
  for (const Completion& answer : answers) {
    tokens += static_cast<std::int64_t>(answer.ids.size());
  }
  log::info("{} tokens in {} s, {} tokens/s", tokens, fixed(seconds, 2), fixed(static_cast<double>(tokens) / std::max(seconds, 1e-9), 1));
}

}  // namespace

int generate_command(const Arguments& args) {
  const GenerateArguments arguments = parse(args);
  const OptionList& list = arguments.list;
  const at::Device device = open_device(list.has("--device") ? list.last("--device") : "auto").device;
  InferenceRequest wanted{list.words[0], device};
  wanted.tokenizer = list.last("--tokenizer");
  if (list.has("--memory-check")) {
    wanted.overrides.push_back("--run.memory_check=" + list.last("--memory-check"));
  }
  wanted.weights = weight_kind_named(list.has("--weights") ? list.last("--weights") : "saved", "--weights");
  const RecordedScript own = script_for(list.last("--script"), list.words[0]);
  ScriptSession script(own.path, own.arguments, own.copies);
  wanted.script = &script;
  const LoadedModel loaded = load_for_inference(wanted, script.registries());
  const ProductsScope products(loaded.products);
  if (!loaded.generation.empty()) {
    log::info("{}", loaded.generation);
  }
  GenerateRequest request = generate_request(loaded, device);
  const std::unique_ptr<const ChatPrompts> chats = open_chats(arguments.prompts, loaded);
  request.prompts = encode(arguments.prompts, loaded, chats.get());
  for (const std::int64_t end : chats != nullptr ? chats->ends() : std::vector<std::int64_t>()) {
    request.ends.push_back(end);
  }
  request.options = merged(generate_options(loaded.config.generate), list);
  request.options.strategy = loaded.sampler.get();
  request.batch_size = list.has("--batch-size") ? option_number<std::int64_t>("--batch-size", list.last("--batch-size"), 1, 1e6) : 16;
  std::size_t longest = 0;
  for (const std::vector<std::int64_t>& prompt : request.prompts) {
    longest = std::max(longest, prompt.size());
  }
  const std::int64_t positions = std::min(request.max_positions, static_cast<std::int64_t>(longest) + request.options.max_new_tokens);
  check_generation(loaded.config, loaded.model->parameters(), request.device,
                   static_cast<double>(std::min<std::int64_t>(request.batch_size, static_cast<std::int64_t>(request.prompts.size()))),
                   static_cast<double>(positions));

  // One text appears as it is written; several only when they are whole, in their order.
  WholeCharacters characters;
  const bool streams = !arguments.json && arguments.prompts.size() == 1 && request.tokenizer != nullptr;
  if (streams) {
    std::cout << before_answer(arguments.prompts[0]) << std::flush;
    request.on_text = [&](std::size_t, const std::string& bytes) { std::cout << characters.push(bytes) << std::flush; };
  }
  const auto begin = std::chrono::steady_clock::now();
  const std::vector<Completion> answers = generate(*loaded.model, request);
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  if (streams) {
    std::cout << characters.finish() << '\n' << std::flush;
  }
  for (std::size_t i = 0; i < answers.size() && !streams; ++i) {
    if (arguments.json) {
      print_json(arguments.prompts[i], answers[i], request.tokenizer != nullptr, list.has("--logprobs"));
    } else {
      print_text(arguments.prompts[i], answers[i], request.tokenizer != nullptr);
    }
  }
  std::cout << std::flush;
  say_speed(answers, seconds);
  return 0;
}

}  // namespace kf
