#include "app/presets.h"

#include <optional>
#include <vector>

#include "core/error.h"
#include "core/fs.h"
#include "core/text.h"

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

}  // namespace

std::string preset_text(const std::string& name) {
  std::error_code ignored;
  if (name.ends_with(".toml") && fs::is_regular_file(name, ignored)) {
    return read_file(name);
  }
  const std::optional<fs::path> folder = presets_folder();
  KF_CHECK(folder, Code::config, "no preset '{}': there is no configs/ folder here or above the program", name);
  const std::string wanted = name.ends_with(".toml") ? name.substr(0, name.size() - 5) : name;
  std::vector<std::string> names;
  for (const fs::path& file : glob(*folder, "*/*.toml")) {
    const std::string full = fs::relative(file, *folder).replace_extension().string();
    if (wanted == full || wanted == file.stem().string()) {
      return read_file(file);
    }
    names.push_back(full);
  }
  const std::string near = nearest(wanted, names);
  fail(Code::config, "no preset '{}'{}; have: {}", name, near.empty() ? "" : "; did you mean '" + near + "'?", join(names, ", "));
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
