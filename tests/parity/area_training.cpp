// training: whole runs of the real program, from the given weights and token files.

#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>

#include "builtins/builtins.h"
#include "checkpoint/files/safetensors.h"
#include "core/error.h"
#include "core/text.h"
#include "data/loader/loader.h"
#include "parity/areas.h"
#include "parity/job.h"
#include "parity/toml.h"
#include "support/process.h"
#include "support/temp_dir.h"

namespace kf::parity {
namespace {

constexpr double kOnCpu = 2e-5;  // README: loss, norm, eval, aux of training runs on a CPU

/// The job of a case: its own settings, and where its files are.
Table job_sections(const Case& test, const fs::path& run_dir, const fs::path& weights) {
  Table sections = table(test.at("config"), "config");
  const std::string data = fs::absolute(test.folder / text(test.at("data_dir"), "data_dir")).string();
  put(sections, "run", "dir", Node(run_dir.string()));
  put(sections, "run", "device", Node(std::string("cpu")));
  put(sections, "data", "dataset_path", Node(data));
  put(sections, "data", "file_pattern", test.at("file_pattern"));
  if (const Node* eos = test.get("eos")) {
    put(sections, "data", "pack_sequences", Node(true));
    put(sections, "data", "eos_id", *eos);
  }
  const std::int64_t steps = integer(at(table(at(sections, "train"), "train"), "max_steps"), "max_steps");
  if (const Node* eval = test.get("eval")) {
    put(sections, "eval", "enabled", Node(true));
    put(sections, "eval", "interval", Node(steps));
    put(sections, "eval", "steps", at(table(*eval, "eval"), "steps"));
    put(sections, "eval", "dataset_path", Node(data));
    put(sections, "eval", "file_pattern", Node(std::string("eval*.npy")));
  }
  if (const Node* optimizer = sections.find("optimizer"); optimizer && get(table(*optimizer, "optimizer"), "name")) {
    const Table& section = table(*optimizer, "optimizer");
    if (text(at(section, "name"), "name") == "muon" && !section.find("muon_params")) {
      put(sections, "optimizer", "muon_params", Node(std::string("shape")));  // README, 1: the golden cases choose by shape
    }
  }
  put(sections, "checkpoint", "init_from", Node(weights.string()));
  put(sections, "checkpoint", "interval", Node(steps));
  put(sections, "metrics", "log_interval", Node(std::int64_t{1}));
  return sections;
}

/// The loader's batches against the stored ones.
void compare_batches(const Case& test, const Table& sections, Comparison& out) {
  const Registries registries = native_registries();
  const config::Config config = job_of(sections, registries);
  const auto loader = make_train_loader(config, {});
  const at::Tensor ids = test.tensor("input_ids").to(at::kLong);  // (steps, accumulation, B, T)
  const at::Tensor labels = test.tensor("labels").to(at::kLong);
  for (std::int64_t s = 0; s < ids.size(0); ++s) {
    for (std::int64_t m = 0; m < ids.size(1); ++m) {
      const Batch batch = loader->batch(s * ids.size(1) + m);
      const std::string where = format("[{}][{}]", s, m);
      out.require("batches", at::equal(batch.tokens, ids[s][m]), "input_ids" + where + " differ");
      out.require("batches", at::equal(batch.labels, labels[s][m]), "labels" + where + " differ");
      if (test.has_tensor("doc_ids")) {
        const at::Tensor documents = test.tensor("doc_ids").to(at::kLong)[s][m];
        out.require("batches", batch.doc_ids.defined() && at::equal(batch.doc_ids, documents), "doc_ids" + where + " differ");
      }
    }
  }
}

struct Rows {
  std::vector<Table> steps;
  std::vector<Table> evals;
};

Rows read_rows(const fs::path& path) {
  Rows rows;
  for (const std::string& line : split(read_file(path), '\n')) {
    if (!line.empty()) {
      const Node row = parse_json(line, path.string());
      (get(table(row, "row"), "eval") ? rows.evals : rows.steps).push_back(table(row, "row"));
    }
  }
  return rows;
}

std::vector<double> column(const std::vector<Table>& rows, const std::string& key) {
  std::vector<double> out;
  for (const Table& row : rows) {
    const Node* value = row.find(key);
    KF_CHECK(value, Code::other, "a row of metrics.jsonl has no '{}'", key);
    out.push_back(value->is_null() ? std::nan("") : number(*value, key));
  }
  return out;
}

/// README's tolerance or the case's, whichever is tighter, but never below twenty times the noise of the reference's own twin run.
void compare_series(const Case& test, const std::string& key, const std::vector<double>& actual, const Node* noise, Comparison& out) {
  const std::vector<double> expected = numbers(at(table(test.at("series"), "series"), key), key);
  const std::vector<double> wobble = noise ? numbers(*noise, "noise") : std::vector<double>(expected.size(), 0.0);
  out.integer(key + " rows", static_cast<std::int64_t>(actual.size()), static_cast<std::int64_t>(expected.size()));
  const Tolerance stated = test.tolerance(key, {{kOnCpu, 0}});
  for (std::size_t s = 0; s < std::min(actual.size(), expected.size()); ++s) {
    const double allowed = std::max(stated.allowed(expected[s]), 20 * (s < wobble.size() ? wobble[s] : 0));
    out.number(format("{}[{}]", key, s), actual[s], expected[s], Tolerance{{{allowed, 0}}});
  }
}

void compare_metrics(const Case& test, const Rows& rows, Comparison& out) {
  compare_series(test, "loss", column(rows.steps, "loss"), test.get("noise_loss"), out);
  compare_series(test, "grad_norm", column(rows.steps, "grad_norm"), test.get("noise_norm"), out);
  const Table& series = table(test.at("series"), "series");
  out.numbers("lr", column(rows.steps, "lr"), numbers(at(series, "lr"), "lr"), Tolerance{{{1e-12, 0}}});
  if (get(series, "aux")) {
    compare_series(test, "aux", column(rows.steps, "moe/aux_loss"), test.get("noise_loss"), out);
  }
  if (const Node* tokens = test.get("tokens_seen")) {
    out.number("tokens_seen", column(rows.steps, "tokens").back(), number(*tokens, "tokens_seen"), Tolerance{{{}}});
  }
  if (const Node* eval = test.get("eval")) {
    KF_CHECK(!rows.evals.empty(), Code::other, "metrics.jsonl has no evaluation");
    const Table& ours = table(at(rows.evals.back(), "eval"), "eval");
    const Table& theirs = table(*eval, "eval");
    const double noise = test.get("noise_eval") ? number(test.at("noise_eval"), "noise_eval") : 0;
    const double allowed = std::max(kOnCpu, 20 * noise);
    out.number("eval loss", number(at(ours, "loss"), "loss"), number(at(theirs, "eval/loss"), "eval/loss"), Tolerance{{{allowed, 0}}});
    out.number("eval perplexity", number(at(ours, "perplexity"), "perplexity"), number(at(theirs, "eval/perplexity"), "eval/perplexity"),
               Tolerance{{{0, allowed}}});  // exp of the loss: an absolute error there is a relative one here
  }
}

/// The weights of the last checkpoint.
void compare_final(const Case& test, const fs::path& run_dir, Comparison& out) {
  const SafetensorsFile file(run_dir / "checkpoints" / "latest" / "model.safetensors");
  const double noise = test.get("noise_final_rms") ? number(test.at("noise_final_rms"), "noise_final_rms") : 0;
  for (const std::string& name : test.tensors("final.")) {
    const at::Tensor ours = file.tensor(name), theirs = test.tensor("final." + name);
    out.tensor("final." + name, ours, theirs, Tolerance{{{1e-3, 0}}});
    const double rms = (ours.to(at::kDouble) - theirs.to(at::kDouble)).square().mean().sqrt().item<double>();
    out.number("final." + name + " (rms of the difference)", rms, 0, Tolerance{{{std::max(1e-5, 20 * noise), 0}}});
  }
  double squares = 0;
  const auto l2 = [](const Node& entry, const std::string& what) { return number(at(table(entry, what), "l2"), what); };
  if (const Node* final = test.get("final")) {
    for (const auto& [name, entry] : table(*final, "final")) {
      const double norm = file.tensor(name).to(at::kDouble).norm().item<double>();
      squares += norm * norm;
      out.number("l2 of final." + name, norm, l2(entry, name), Tolerance{{{0, 1e-4}}});
    }
    if (const Node* total = test.get("final_total")) {
      out.number("l2 of final_total", std::sqrt(squares), l2(*total, "final_total"), Tolerance{{{0, 1e-4}}});
    }
  }
}

}  // namespace

void run_training(const Case& test, Comparison& out, const Settings& settings) {
  KF_CHECK(fs::exists(settings.host), Code::other, "there is no program {}; build kf-host, or set KF_HOST", settings.host);
  const test::TempDir temp;
  const fs::path weights = temp / "start.safetensors", run_dir = temp / "run";
  std::vector<std::pair<std::string, at::Tensor>> start;
  for (const std::string& name : test.tensors("weights.")) {
    start.emplace_back(name, test.tensor("weights." + name));
  }
  write_safetensors(weights, start);
  const Table sections = job_sections(test, run_dir, weights);
  const fs::path job = temp.write("job.toml", to_toml(sections));

  test::Options options;
  options.cwd = temp.path();
  options.timeout = std::chrono::seconds(300);
  const test::Finished finished = test::run({settings.host.string(), job.string()}, options);
  KF_CHECK(finished.status == 0, Code::other, "kf-host ended with status {}: {}", finished.status,
           finished.err.substr(finished.err.size() - std::min<std::size_t>(finished.err.size(), 1000)));
  compare_batches(test, sections, out);
  compare_metrics(test, read_rows(run_dir / "metrics.jsonl"), out);
  compare_final(test, run_dir, out);
}

}  // namespace kf::parity
