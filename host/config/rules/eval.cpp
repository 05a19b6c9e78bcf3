// What [eval], [[eval.datasets]] and [generate] must agree on.

#include <algorithm>
#include <cctype>

#include "config/rules/rules.h"
#include "core/ascii.h"
#include "core/fs.h"
#include "core/text.h"

namespace kf::config {
namespace {

bool has_source(const EvalConfig& eval) { return !eval.datasets.empty() || !eval.dataset_path.empty() || eval.hf_dataset_name; }

std::string key_of(std::size_t i, const char* field) { return format("eval.datasets[{}].{}", i, field); }

void evaluation_has_data(const Job& job, Findings& findings) {
  if (job.config.eval.enabled && !has_source(job.config.eval) && job.config.data.holdout == 0) {
    findings.problem({"eval.enabled", "eval.dataset_path", "eval.hf_dataset_name", "data.holdout"},
                     "eval.enabled is true but there is no eval data source; give eval.dataset_path, eval.datasets or "
                     "eval.hf_dataset_name, or keep documents of a text source back with data.holdout");
  }
}

void holdout_is_used(const Job& job, Findings& findings) {
  if (job.config.data.holdout > 0 && has_source(job.config.eval)) {
    findings.warn({"data.holdout", "eval.enabled"}, "data.holdout keeps nothing back: eval has a source of its own");
  } else if (job.config.data.holdout > 0 && !job.config.eval.enabled) {
    findings.warn({"data.holdout", "eval.enabled"}, "data.holdout keeps nothing back: eval.enabled is false");
  }
}

void one_source_wins(const Job& job, Findings& findings) {
  const EvalConfig& eval = job.config.eval;
  if (!eval.datasets.empty() && !eval.dataset_path.empty()) {
    findings.warn({"eval.datasets", "eval.dataset_path"}, "eval.datasets wins over eval.dataset_path, which is not read");
  } else if (eval.hf_dataset_name && (!eval.datasets.empty() || !eval.dataset_path.empty())) {
    findings.warn({"eval.hf_dataset_name"}, format("{} wins over eval.hf_dataset_name, which is not read",
                                                   eval.datasets.empty() ? "eval.dataset_path" : "eval.datasets"));
  }
}

bool is_name(const std::string& name) {
  return !name.empty() && std::all_of(name.begin(), name.end(), [](char c) { return is_alnum(c) || c == '_' || c == '-' || c == '/'; });
}

void sets_have_names(const Job& job, Findings& findings) {
  const std::vector<std::string> taken{"step", "loss", "perplexity", "tokens", "bits_per_byte", "accuracy", "ema", "mtp_acceptance"};
  const std::vector<EvalDataset>& sets = job.config.eval.datasets;
  for (std::size_t i = 0; i < sets.size(); ++i) {
    const std::string key = sets[i].name.empty() ? format("eval.datasets[{}]", i) : key_of(i, "name");
    if (!is_name(sets[i].name)) {
      findings.problem({key},
                       format("eval.datasets[{}] needs a name of letters, digits, '_', '-' and '/', got {}: metrics hold its loss as "
                              "eval.NAME.loss",
                              i, brief(Node(sets[i].name))));
    } else if (std::find(taken.begin(), taken.end(), sets[i].name) != taken.end()) {
      findings.problem({key}, format("eval.datasets[{}] is called {}, which is a number of every evaluation; choose another name", i,
                                     brief(Node(sets[i].name))));
    }
    for (std::size_t j = 0; j < i; ++j) {
      if (!sets[i].name.empty() && sets[i].name == sets[j].name) {
        findings.problem({key_of(i, "name"), key_of(j, "name")},
                         format("eval.datasets[{}] and eval.datasets[{}] are both called {}; give them different names", j, i,
                                brief(Node(sets[i].name))));
      }
    }
  }
}

void sets_say_where(const Job& job, Findings& findings) {
  const std::vector<EvalDataset>& sets = job.config.eval.datasets;
  for (std::size_t i = 0; i < sets.size(); ++i) {
    std::error_code ignored;
    if (sets[i].path.empty() && sets[i].hf_name.empty() && sets[i].dataset.empty()) {
      findings.problem(
          {format("eval.datasets[{}]", i)},
          format("eval.datasets[{}] ({}) must have either path or hf_name, or name a registered dataset", i, brief(Node(sets[i].name))));
    } else if (!sets[i].dataset.empty() && !(sets[i].path.empty() && sets[i].hf_name.empty())) {
      findings.problem({key_of(i, "dataset")}, format("eval.datasets[{}] is the registered dataset {}, which has no path or hf_name", i,
                                                      brief(Node(sets[i].dataset))));
    } else if (job.files_must_exist && job.config.eval.enabled && !sets[i].path.empty() &&
               sets[i].path.find_first_of("*?[{") == std::string::npos && !fs::exists(sets[i].path, ignored)) {
      findings.problem({key_of(i, "path")}, format("{} ({}) does not exist; relative paths start at the working folder, or beside the job",
                                                   key_of(i, "path"), brief(Node(sets[i].path))));
    }
  }
}

/// The means over sets must always be of the same ones, so some are there at every evaluation.
void intervals_fit(const Job& job, Findings& findings) {
  const EvalConfig& eval = job.config.eval;
  bool always = eval.datasets.empty();
  Int least = 0;
  for (std::size_t i = 0; i < eval.datasets.size(); ++i) {
    const Int interval = eval.datasets[i].interval.value_or(eval.interval);
    if (eval.interval > 0 && interval % eval.interval != 0) {
      findings.problem({key_of(i, "interval"), "eval.interval"},
                       format("{} ({}) must be a multiple of eval.interval ({}): sets are evaluated at those steps", key_of(i, "interval"),
                              interval, eval.interval));
    }
    always = always || interval <= eval.interval;
    least = i == 0 ? interval : std::min(least, interval);
  }
  if (!always) {
    findings.problem(
        {"eval.datasets", "eval.interval"},
        format("no set of eval.datasets is evaluated every eval.interval ({}) steps, and eval.loss is the mean of those that are; "
               "set eval.interval = {}, or leave the interval of one set out",
               eval.interval, least));
  }
}

void stop_texts_say_something(const Job& job, Findings& findings) {
  const Strings& stop = job.config.generate.stop;
  if (std::find(stop.begin(), stop.end(), "") != stop.end()) {
    findings.problem({"generate.stop"}, "generate.stop has an empty text, which would end every answer at once; leave it out");
  }
}

void stop_ids_are_ids(const Job& job, Findings& findings) {
  for (const Int id : job.config.generate.stop_ids) {
    if (id >= job.config.model.vocab_size) {
      findings.problem({"generate.stop_ids", "model.vocab_size"},
                       format("generate.stop_ids has {}, which is no id of the model: they are 0 to {} (model.vocab_size = {})", id,
                              job.config.model.vocab_size - 1, job.config.model.vocab_size));
    }
  }
}

void acceptance_has_its_layer(const Job& job, Findings& findings) {
  if (job.config.eval.mtp_head > job.config.model.mtp_layers) {
    findings.problem({"eval.mtp_head", "model.mtp_layers"},
                     format("eval.mtp_head ({}) names a layer of multi-token prediction that the model has not: model.mtp_layers = {}",
                            job.config.eval.mtp_head, job.config.model.mtp_layers));
  }
}

}  // namespace

std::vector<Rule> eval_rules() {
  return {evaluation_has_data, holdout_is_used,          one_source_wins,  sets_have_names,         sets_say_where,
          intervals_fit,       stop_texts_say_something, stop_ids_are_ids, acceptance_has_its_layer};
}

}  // namespace kf::config
