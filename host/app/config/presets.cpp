#include "app/config/presets.h"

#include <algorithm>
#include <optional>
#include <vector>

#include "config/load/load.h"
#include "config/load/model_presets.h"
#include "config/plan/derived.h"
#include "core/error.h"
#include "core/fs.h"
#include "core/text.h"
#include "core/wrap.h"

namespace kf {
namespace {

/// configs/ of the working folder, or of the first folder above the program that has one.
std::optional<fs::path> presets_folder() {
  std::error_code ignored;
  if (fs::is_directory("configs/train", ignored)) {
    return fs::path("configs");
  }
  for (fs::path at = fs::read_symlink("/proc/self/exe", ignored).parent_path(); at.has_relative_path(); at = at.parent_path()) {
    for (const char* place : {"configs", "share/kf-host/configs"}) {
      if (fs::is_directory(at / place / "train", ignored)) {
        return at / place;
      }
    }
  }
  return std::nullopt;
}

/// A job of configs/: its name without the ending, and its first line, a comment.
struct JobPreset {
  std::string name;
  fs::path file;
  std::string what;
};

std::vector<JobPreset> job_presets() {
  const std::optional<fs::path> folder = presets_folder();
  std::vector<JobPreset> out;
  if (!folder) {
    return out;
  }
  for (const fs::path& file : glob(*folder, "*/*.toml")) {
    const std::string text = read_file(file);
    const std::string first = text.substr(0, text.find('\n'));
    out.push_back({fs::relative(file, *folder).replace_extension().string(), file, first.starts_with("# ") ? first.substr(2) : ""});
  }
  return out;
}

config::ModelConfig model_of(const std::string& preset) {
  config::Request request;
  request.overrides = {"--model.preset=" + preset};
  request.files_must_exist = false;
  return config::load(request, {}).config.model;  // names of parts are not known here, and not asked for
}

/// "1.0 T", "8.0 B", "124 M", "52 k".
std::string size_text(const config::ModelConfig& model) {
  const auto count = static_cast<double>(config::parameter_count(model));
  if (count >= 9.995e11) {
    return fixed(count / 1e12, 1) + " T";
  }
  if (count >= 9.995e8) {
    return fixed(count / 1e9, count < 1e11 ? 1 : 0) + " B";
  }
  return count >= 9.995e5 ? fixed(count / 1e6, 0) + " M" : fixed(count / 1e3, 0) + " k";
}

std::string padded(std::string text, std::size_t width) {
  text.resize(std::max(width, text.size() + 1), ' ');
  return text;
}

std::string left_padded(const std::string& text, std::size_t width) {
  return std::string(text.size() + 1 < width ? width - text.size() : 1, ' ') + text;
}

/// A job around a known model: everything else is a start, to be changed.
std::string model_job(const std::string& name) {
  const config::ModelConfig m = model_of(name);
  return format(R"(# {}: {} parameters, {} layers, width {}. Sizes of your own below [model] win over the preset's.
# `kf-host config check FILE` tells how much memory the job takes.

[model]
preset = "{}"

[train]
batch_size = 1
seq_len = {}
grad_accum_steps = 8
max_steps = 1000
activation_checkpointing = "full"   # less memory, a third more time
loss_fn = "fused_linear_cross_entropy"

[optimizer]
lr = 3e-4

[scheduler]
warmup_steps = 100

[data]
dataset_path = "."       # your files: text, JSON lines, Parquet, or .npy and .bin tokens
file_pattern = "**/*.txt"
tokenizer_path = ""      # a tokenizer.json, tokenizer.model or their folder; empty takes bytes

[checkpoint]
interval = 200
)",
                name, size_text(m), m.n_layers, m.dim, name, std::min<std::int64_t>(m.max_seq_len, 2048));
}

}  // namespace

std::string preset_text(const std::string& name) {
  std::error_code ignored;
  if (name.ends_with(".toml") && fs::is_regular_file(name, ignored)) {
    return read_file(name);
  }
  const std::string wanted = name.ends_with(".toml") ? name.substr(0, name.size() - 5) : name;
  std::vector<std::string> names = config::model_preset_names();
  if (std::find(names.begin(), names.end(), wanted) != names.end()) {
    return model_job(wanted);
  }
  for (const JobPreset& job : job_presets()) {
    if (wanted == job.name || wanted == job.file.stem().string()) {
      return read_file(job.file);
    }
    names.push_back(job.name);
  }
  const std::string near = nearest(wanted, names);
  fail(Code::config, "no preset '{}'{}; `kf-host config presets` lists them", name, near.empty() ? "" : "; did you mean '" + near + "'?");
}

std::string presets_text(const std::string& pattern) {
  const auto wanted = [&](const std::string& name) {
    return pattern.find_first_of("*?") != std::string::npos ? glob_match(pattern, name) : name.find(pattern) != std::string::npos;
  };
  std::string models;
  for (const std::string& name : config::model_preset_names()) {
    if (wanted(name)) {
      const config::ModelConfig m = model_of(name);
      models += padded(name, 26) + left_padded(size_text(m), 8) + left_padded(std::to_string(m.n_layers), 8) +
                left_padded(std::to_string(m.dim), 8) + left_padded(std::to_string(m.vocab_size), 12) +
                left_padded(std::to_string(m.max_seq_len), 12) + "\n";
    }
  }
  std::string jobs;
  for (const JobPreset& job : job_presets()) {
    if (wanted(job.name)) {
      jobs += wrapped(padded(job.name, 34) + job.what, 80, 34) + "\n";
    }
  }
  KF_CHECK(!models.empty() || !jobs.empty(), Code::config, "no preset matches '{}'; `kf-host config presets` lists all", pattern);
  const std::string head = padded("model", 26) + left_padded("size", 8) + left_padded("layers", 8) + left_padded("width", 8) +
                           left_padded("vocabulary", 12) + left_padded("positions", 12) + "\n";
  std::string out = models.empty() ? "" : head + models;
  if (!jobs.empty()) {
    out += (out.empty() ? "job\n" : "\njob\n") + jobs;
  }
  return out;
}

std::string presets_markdown() {
  std::string out =
      "# Presets\n\n"
      "<!-- Made by `kf-host config docs presets` from host/config/load/model_preset_table.cpp and configs/; edit those. -->\n\n"
      "`model.preset = \"NAME\"` makes the shape of a known model the default of `[model]`; keys of your own win, with a log line. "
      "`kf-host config new NAME`\nprints a job around it, and `kf-host config presets` this list. A folder with a `config.json` of Hugging "
      "Face is a preset, too.\n\n"
      "| model | parameters | layers | width | heads | vocabulary | positions |\n|---|---|---|---|---|---|---|\n";
  for (const std::string& name : config::model_preset_names()) {
    const config::ModelConfig m = model_of(name);
    out += format("| `{}` | {} | {} | {} | {}/{} | {} | {} |\n", name, size_text(m), m.n_layers, m.dim, m.n_heads, config::kv_heads(m),
                  grouped(m.vocab_size), grouped(m.max_seq_len));
  }
  out +=
      "\n## Jobs\n\nWhole jobs of `configs/`, for `kf-host config new NAME`. Those for several GPUs can be checked, not run yet.\n\n| job "
      "| what |\n|---|---|\n";
  for (const JobPreset& job : job_presets()) {
    out += format("| `{}` | {} |\n", job.name, job.what);
  }
  return out;
}

std::string starter_job() {
  return R"(# A small job: `kf-host FILE` trains it. `kf-host config keys` lists every setting, `kf-host config check FILE` checks this file.

[model]
dim = 256
n_layers = 4
n_heads = 8
n_kv_heads = 4
vocab_size = 512
max_seq_len = 256

[train]
batch_size = 8
seq_len = 256
max_steps = 500
mixed_precision = "fp32"

[optimizer]
lr = 1e-3

[scheduler]
warmup_steps = 50

[data]
dataset_path = "."       # text files, .npy or .bin tokens
file_pattern = "**/*.txt"
holdout = 0.05           # share of the documents kept for evaluation

[eval]
enabled = true
interval = 100
steps = 20

[checkpoint]
interval = 100
)";
}

}  // namespace kf
