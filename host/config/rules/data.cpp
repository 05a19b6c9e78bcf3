#include <algorithm>

#include "config/plan/derived.h"
#include "config/rules/rules.h"
#include "core/fs.h"
#include "core/hub_name.h"
#include "core/text.h"

namespace kf::config {
namespace {

void sources_say_where(const Job& job, Findings& findings) {
  for (std::size_t i = 0; i < job.config.data.datasets.size(); ++i) {
    const DatasetSource& source = job.config.data.datasets[i];
    const std::string key = format("data.datasets[{}]", i);
    if (source.path.empty() && source.hf_name.empty() && source.dataset.empty()) {
      findings.problem({key}, format("{}{} must have either path or hf_name, or name a registered dataset", key,
                                     source.name.empty() ? "" : " (" + brief(Node(source.name)) + ")"));
    }
    if (!source.dataset.empty() && !(source.path.empty() && source.hf_name.empty() && source.transforms.empty())) {
      findings.problem(
          {key}, format("{} is the registered dataset {}, which has no path, hf_name or transforms", key, brief(Node(source.dataset))));
    }
  }
}

/// A revision may stand in the name of a data set, or for all of them in data.hf_dataset_revision.
void revisions_agree(const Job& job, Findings& findings) {
  const auto look = [&](const std::string& key, const std::string& text) {
    const std::string revision = data_set_name(text).revision;
    if (text.find('@') != std::string::npos && !is_revision(revision)) {
      findings.problem({key}, format("{} ({}) has {} behind @, which is no branch, tag or commit; write ORG/NAME@REVISION", key,
                                     brief(Node(text)), brief(Node(revision))));
    } else if (!revision.empty() && findings.given("data.hf_dataset_revision") && revision != job.config.data.hf_dataset_revision) {
      findings.problem({key, "data.hf_dataset_revision"},
                       format("{} names the revision {}, but data.hf_dataset_revision is {}; give it in one place", key,
                              brief(Node(revision)), brief(Node(job.config.data.hf_dataset_revision))));
    }
  };
  const Config& config = job.config;
  look("data.hf_dataset_name", config.data.hf_dataset_name.value_or(""));
  look("eval.hf_dataset_name", config.eval.hf_dataset_name.value_or(""));
  for (std::size_t i = 0; i < config.data.datasets.size(); ++i) {
    look(format("data.datasets[{}].hf_name", i), config.data.datasets[i].hf_name);
  }
  for (std::size_t i = 0; i < config.eval.datasets.size(); ++i) {
    look(format("eval.datasets[{}].hf_name", i), config.eval.datasets[i].hf_name);
  }
}

void datasets_win(const Job& job, Findings& findings) {
  const DataConfig& d = job.config.data;
  if (!d.datasets.empty() && !d.dataset_path.empty()) {
    findings.warn({"data.datasets", "data.dataset_path"}, "data.datasets wins over data.dataset_path, which is not read");
  } else if (d.hf_dataset_name && (!d.datasets.empty() || !d.dataset_path.empty())) {
    findings.warn({"data.hf_dataset_name"}, format("{} wins over data.hf_dataset_name, which is not read",
                                                   d.datasets.empty() ? "data.dataset_path" : "data.datasets"));
  }
}

void phases_rise(const Job& job, Findings& findings) {
  const std::vector<TrainingPhase>& phases = job.config.data.phases;
  for (std::size_t i = 1; i < phases.size(); ++i) {
    if (phases[i].start_step <= phases[i - 1].start_step) {
      const std::string here = format("data.phases[{}].start_step", i);
      const std::string before = format("data.phases[{}].start_step", i - 1);
      findings.problem({here, before}, format("{} ({}) must be above {} ({}): phases must be strictly monotonically increasing", here,
                                              phases[i].start_step, before, phases[i - 1].start_step));
    }
  }
}

void phases_or_annealing(const Job& job, Findings& findings) {
  const DataConfig& d = job.config.data;
  if (!d.phases.empty() && d.anneal_start_step > 0) {
    findings.problem({"data.phases", "data.anneal_start_step"},
                     "Cannot use both data.phases and data.anneal_start_step; annealing is a phase of its own: write it as the last one");
  }
}

/// Weights by name: each names a source, and one is above 0.
void check_weights(const Job& job, Findings& findings, const std::string& key, const Numbers& weights, const std::string& owner) {
  const std::vector<DatasetSource>& sources = job.config.data.datasets;
  std::vector<std::string> names;
  names.reserve(sources.size());
  for (const DatasetSource& source : sources) {
    names.push_back(source_name(source));
  }
  double total = 0;
  for (const auto& [name, weight] : weights) {
    total += weight;
    if (!sources.empty() && std::find(names.begin(), names.end(), name) == names.end()) {
      const std::string place = name.find('.') == std::string::npos ? key + "." + name : key;  // a dot would be read as a path
      findings.problem({place}, format("{} names no source {}; have: {}", owner, brief(Node(name)), join(names, ", ")));
    }
  }
  for (const DatasetSource& source : sources) {
    total += weights.contains(source_name(source)) ? 0 : source.weight;  // left out: keeps its own
  }
  if (!weights.empty() && total <= 0) {
    findings.problem({key}, format("{} gives every source the weight 0; one must be above 0", owner));
  }
}

void phase_weights_make_sense(const Job& job, Findings& findings) {
  const std::vector<TrainingPhase>& phases = job.config.data.phases;
  for (std::size_t i = 0; i < phases.size(); ++i) {
    check_weights(job, findings, format("data.phases[{}].dataset_weights", i), phases[i].dataset_weights,
                  format("data.phases[{}] (start_step {})", i, phases[i].start_step));
  }
  for (std::size_t i = 0; i < job.config.phases.size(); ++i) {
    check_weights(job, findings, format("phases[{}].mixture", i), job.config.phases[i].mixture, format("phases[{}].mixture", i));
  }
  check_weights(job, findings, "data.anneal_weights", job.config.data.anneal_weights, "data.anneal_weights");
}

void mixture_names_differ(const Job& job, Findings& findings) {
  const std::vector<DatasetSource>& sources = job.config.data.datasets;
  for (std::size_t i = 1; i < sources.size(); ++i) {
    for (std::size_t j = 0; j < i; ++j) {
      if (!source_name(sources[i]).empty() && source_name(sources[i]) == source_name(sources[j])) {
        findings.problem({format("data.datasets[{}]", i), format("data.datasets[{}]", j)},
                         format("data.datasets[{}] and data.datasets[{}] are both called {}; give them different names", i, j,
                                brief(Node(source_name(sources[i])))));
      }
    }
  }
}

void eos_is_a_token(const Job& job, Findings& findings) {
  const std::optional<std::int64_t>& eos = job.config.data.eos_id;
  if (eos && *eos >= job.config.model.vocab_size) {
    findings.problem({"data.eos_id", "model.vocab_size"},
                     format("data.eos_id ({}) must be below model.vocab_size ({})", *eos, job.config.model.vocab_size));
  }
}

void simulated_tokens_have_both(const Job& job, Findings& findings) {
  const DataConfig& d = job.config.data;
  if (d.simulate_tokens > d.target_tokens || (d.simulate_tokens == 0) != (d.target_tokens == 0)) {
    findings.problem({"data.simulate_tokens", "data.target_tokens"},
                     format("data.simulate_tokens ({}) and data.target_tokens ({}) go together: give both, the first not above the second",
                            d.simulate_tokens, d.target_tokens));
  }
}

/// Orders by arithmetic are those of one data set; a mixture has them inside its blocks.
void mixtures_have_blocks(const Job& job, Findings& findings) {
  const DataConfig& d = job.config.data;
  if (!d.datasets.empty() && d.shuffle != "torch" && d.mix_block == 0) {
    findings.problem({"data.shuffle", "data.mix_block"},
                     format("data.shuffle = {} orders the sequences of one source; for a mixture, set data.mix_block, too (2048, say)",
                            brief(Node(d.shuffle))));
  }
  if (d.datasets.empty() && d.mix_block > 0) {
    findings.problem({"data.mix_block", "data.datasets"},
                     "data.mix_block is set, but there is no mixture: list the sources in data.datasets");
  }
  if (d.mix_stop != "repeat" && d.mix_block == 0) {
    findings.problem(
        {"data.mix_stop", "data.mix_block"},
        format("data.mix_stop = {} needs data.mix_block above 0: without blocks a mixture always repeats", brief(Node(d.mix_stop))));
  }
}

/// What a source or [data] says of a record's text, by the prefix of its keys.
void check_text_keys(const std::string& prefix, const std::string& text_template, const std::string& messages, const std::string& prompt,
                     const std::string& prompt_template, const std::string& completion, Findings& findings) {
  const bool pair = !prompt.empty() || !prompt_template.empty() || !completion.empty();
  if (!messages.empty() && !text_template.empty()) {
    findings.problem({prefix + "text_template", prefix + "messages_field"},
                     format("{}text_template and {}messages_field both say what the text of a record is; leave one out", prefix, prefix));
  }
  if (pair && (!messages.empty() || !text_template.empty())) {
    const std::string other = prefix + (messages.empty() ? "text_template" : "messages_field");
    findings.problem({prefix + "completion_field", other},
                     format("{}completion_field and {} both say what the text of a record is; leave one out{}", prefix, other,
                            messages.empty() ? format("; {}prompt_template makes a prompt of several fields", prefix) : ""));
  }
  if (pair && completion.empty()) {
    const std::string key = prefix + (prompt.empty() ? "prompt_template" : "prompt_field");
    findings.problem({key}, format("{} names a prompt, and nothing answers it: set {}completion_field", key, prefix));
  }
  if (!completion.empty() && prompt.empty() == prompt_template.empty()) {
    findings.problem(
        {prefix + "completion_field"},
        format("{}completion_field answers a prompt: set {}prompt_field or {}prompt_template, one of them", prefix, prefix, prefix));
  }
}

/// A record's text is a field, a template's, a chat's, or a prompt with its completion.
void text_comes_one_way(const Job& job, Findings& findings) {
  const DataConfig& d = job.config.data;
  check_text_keys("data.", d.text_template, d.messages_field, d.prompt_field, d.prompt_template, d.completion_field, findings);
  for (std::size_t i = 0; i < d.datasets.size(); ++i) {
    const DatasetSource& s = d.datasets[i];
    check_text_keys(format("data.datasets[{}].", i), s.text_template.value_or(""), s.messages_field.value_or(""),
                    s.prompt_field.value_or(""), s.prompt_template.value_or(""), s.completion_field.value_or(""), findings);
  }
}

/// Keys about chats and answers, where there are none.
void chats_have_messages(const Job& job, Findings& findings) {
  const DataConfig& d = job.config.data;
  const DataConfig usual;
  const auto any = [&](auto member, const std::string& own) {
    return !own.empty() ||
           std::any_of(d.datasets.begin(), d.datasets.end(), [&](const DatasetSource& s) { return !(s.*member).value_or("").empty(); });
  };
  const bool pairs = any(&DatasetSource::completion_field, d.completion_field);
  const bool chats = any(&DatasetSource::messages_field, d.messages_field) || pairs;  // prompts may be lists of messages, too
  const std::pair<const char*, bool> about_chats[] = {
      {"data.message_format", d.message_format != usual.message_format && d.chat_template.empty()},
      {"data.role_field", !d.role_field.empty()},
      {"data.content_field", !d.content_field.empty()},
      {"data.tool_calls", d.tool_calls != usual.tool_calls}};
  for (const auto& [key, set] : about_chats) {
    if (set && !chats) {
      findings.warn({key}, format("{} has no effect without data.messages_field, which names the chats", key));
    }
  }
  if (d.message_format != usual.message_format && !d.chat_template.empty()) {
    findings.warn({"data.message_format", "data.chat_template"}, "data.chat_template wins over data.message_format, which has no effect");
  }
  if (!d.chat_template_args.empty() && d.chat_template.empty()) {
    findings.warn({"data.chat_template_args"}, "data.chat_template_args has no effect without data.chat_template");
  }
  if (d.tool_calls != usual.tool_calls && !d.chat_template.empty() && chats) {
    findings.warn({"data.tool_calls"}, "data.tool_calls has no effect with data.chat_template, which writes the calls itself");
  }
  if (d.prompt_as_chat && !pairs) {
    findings.warn({"data.prompt_as_chat"}, "data.prompt_as_chat has no effect without data.completion_field");
  }
  if (d.special_tokens == "special" && !d.messages_field.empty()) {
    findings.warn({"data.special_tokens"},
                  "data.special_tokens = \"special\" has no effect on chats: special tokens of the format are the tokens anyway, and those "
                  "that somebody says never are");
  }
  if (d.loss_on == "answers" && !chats && d.datasets.empty() && (!d.dataset_path.empty() || d.hf_dataset_name)) {
    findings.problem({"data.loss_on"},
                     "data.loss_on = \"answers\" is about chats and completions: set data.messages_field, or data.prompt_field and "
                     "data.completion_field");
  }
}

/// A digit too many would take the machine's threads or memory.
void loading_has_bounds(const Job& job, Findings& findings) {
  const DataConfig& d = job.config.data;
  const auto at_most = [&](const char* key, std::int64_t value, std::int64_t most, const char* what) {
    if (value > most) {
      findings.problem({key}, format("{} ({}) must be at most {}: {}", key, value, most, what));
    }
  };
  at_most("data.num_workers", d.num_workers, 1024, "each is a thread");
  at_most("data.prefetch_factor", d.prefetch_factor, 1024, "each thread keeps so many batches in memory");
  at_most("data.mix_block", d.mix_block, 1 << 24, "a block is laid out in memory");
}

void windows_have_an_order(const Job& job, Findings& findings) {
  const DataConfig& d = job.config.data;
  if (d.shuffle_window != DataConfig().shuffle_window && d.shuffle != "block" && d.shuffle != "window") {
    findings.warn({"data.shuffle_window", "data.shuffle"},
                  format("data.shuffle_window ({}) has no effect with data.shuffle = {}: it is the size of \"block\" and \"window\"",
                         d.shuffle_window, brief(Node(d.shuffle))));
  }
}

/// Keys of one way to pack.
void packing_agrees(const Job& job, Findings& findings) {
  const DataConfig& d = job.config.data;
  if (d.pack_method == "concat" && (d.max_segments > 0 || d.long_documents != "chunk")) {
    findings.problem({d.max_segments > 0 ? "data.max_segments" : "data.long_documents", "data.pack_method"},
                     "data.max_segments and data.long_documents belong to the other ways of data.pack_method; \"concat\" cuts one stream");
  }
  if (d.pack_method == "pad" && d.max_segments > 1) {
    findings.problem({"data.max_segments", "data.pack_method"},
                     "data.pack_method = \"pad\" gives each document a sequence of its own; leave "
                     "data.max_segments out");
  }
}

/// What packs documents, and what does not.
void packed_sources_have_documents(const Job& job, Findings& findings) {
  const DataConfig& d = job.config.data;
  if (d.pack_method != "concat" && d.datasets.empty() && d.dataset_path.empty() && !d.hf_dataset_name) {
    findings.problem(
        {"data.pack_method"},
        format("data.pack_method = {} packs documents, and synthetic data has none; set data.dataset_path", brief(Node(d.pack_method))));
  }
  for (std::size_t i = 0; i < d.datasets.size(); ++i) {
    if (d.pack_method != "concat" && !d.datasets[i].dataset.empty()) {
      findings.problem({"data.pack_method", format("data.datasets[{}].dataset", i)},
                       format("data.pack_method = {} packs documents, but the data set {} gives windows; set data.pack_method = \"concat\"",
                              brief(Node(d.pack_method)), brief(Node(d.datasets[i].dataset))));
    }
  }
}

/// Whole passes are counted at one length.
void epochs_have_one_length(const Job& job, Findings& findings) {
  const Config& c = job.config;
  for (std::size_t i = 0; i < c.phases.size(); ++i) {
    if (c.data.epochs > 0 && c.phases[i].seq_len && *c.phases[i].seq_len != c.train.seq_len) {
      findings.problem(
          {"data.epochs", format("phases[{}].seq_len", i)},
          format("data.epochs counts passes over sequences of one length, and phases[{}].seq_len ({}) changes it; end the run by "
                 "train.max_steps",
                 i, *c.phases[i].seq_len));
    }
  }
}

void limits_are_read(const Job& job, Findings& findings) {
  const DataConfig& d = job.config.data;
  if (!d.datasets.empty() && (d.max_documents > 0 || d.max_tokens > 0)) {
    findings.warn({"data.max_documents", "data.max_tokens"},
                  "data.max_documents and data.max_tokens are about data.dataset_path; a source of data.datasets has limits of its own");
  }
}

void paths_exist(const Job& job, Findings& findings) {
  if (!job.files_must_exist) {
    return;
  }
  const DataConfig& d = job.config.data;
  std::vector<std::pair<std::string, std::string>> paths{{"eval.dataset_path", job.config.eval.enabled ? job.config.eval.dataset_path : ""},
                                                         {"checkpoint.load_path", job.config.checkpoint.load_path.value_or("")},
                                                         {"checkpoint.init_from", job.config.checkpoint.init_from.value_or("")}};
  if (d.datasets.empty()) {
    paths.emplace_back("data.dataset_path", d.dataset_path);
  }
  for (std::size_t i = 0; i < d.datasets.size(); ++i) {
    paths.emplace_back(format("data.datasets[{}].path", i), d.datasets[i].path);
  }
  if (!d.tokenizer_path.starts_with("lua:")) {
    paths.emplace_back("data.tokenizer_path", d.tokenizer_path);
  }
  const auto is_pattern = [](const std::string& key, const std::string& path) {
    return (key.ends_with("dataset_path") || key.ends_with("].path")) && path.find_first_of("*?[{") != std::string::npos;
  };
  for (const auto& [key, path] : paths) {
    std::error_code ignored;
    if (path.empty() || fs::exists(path, ignored) || is_pattern(key, path)) {  // what a pattern finds is asked when files are
      continue;
    }
    const bool tokenizer = key == "data.tokenizer_path";
    const bool by_name = tokenizer || key == "checkpoint.init_from";
    if (!by_name || !hub_name(path, tokenizer)) {
      findings.problem({key}, format("{} ({}) does not exist; relative paths start at the working folder, or beside the job{}", key,
                                     brief(Node(path)), by_name ? "; models of the Hugging Face hub are named ORG/NAME" : ""));
    }
  }
}

}  // namespace

std::vector<Rule> source_rules() {
  return {sources_say_where,
          revisions_agree,
          datasets_win,
          phases_rise,
          phases_or_annealing,
          phase_weights_make_sense,
          mixture_names_differ,
          simulated_tokens_have_both,
          mixtures_have_blocks,
          chats_have_messages,
          packed_sources_have_documents,
          epochs_have_one_length,
          limits_are_read};
}

std::vector<Rule> data_rules() {
  return {eos_is_a_token, text_comes_one_way, loading_has_bounds, windows_have_an_order, packing_agrees, paths_exist};
}

}  // namespace kf::config
