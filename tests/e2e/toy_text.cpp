#include "e2e/toy_text.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <stdexcept>

#include "checkpoint/files/safetensors.h"
#include "config/tree/json.h"
#include "core/text.h"
#include "data/file/token_file.h"

namespace kf::cases {
namespace {

constexpr const char* kJob = R"([run]
dir = "run"
device = "cpu"
[model]
dim = 32
n_layers = 2
n_heads = 4
vocab_size = 97
max_seq_len = 64
[train]
mixed_precision = "fp32"
seq_len = 32
batch_size = 2
max_steps = 7
[optimizer]
lr = 1e-3
[scheduler]
name = "constant"
warmup_steps = 0
[data]
dataset_path = "tokens"
[metrics]
log_interval = 1
[checkpoint]
interval = 5
)";

/// A stream that a model can learn something from, without any library's generator.
std::vector<std::int64_t> stream(std::int64_t length, std::uint64_t seed) {
  std::vector<std::int64_t> ids;
  std::uint64_t state = seed;
  for (std::int64_t i = 0; i < length; ++i) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    ids.push_back(static_cast<std::int64_t>((state >> 33) % 97 * ((state >> 45) % 3) / 2 % 97));
  }
  return ids;
}

}  // namespace

Workbench::Workbench(const std::string& extra) {
  temp_.write("job.toml", kJob + extra);
  fs::create_directories(temp_ / "tokens");
  fs::create_directories(temp_ / "held_out");
  write_token_file(temp_ / "tokens" / "train.npy", stream(33 * 40, 1), TokenType::uint16);
  write_token_file(temp_ / "held_out" / "eval.npy", stream(33 * 7, 2), TokenType::uint16);
}

test::Finished Workbench::run(const std::vector<std::string>& arguments) const { return run_in("run", arguments); }

test::Finished Workbench::run_in(const std::string& folder, const std::vector<std::string>& arguments) const {
  std::vector<std::string> command{KF_HOST, "job.toml", "--run.dir=" + folder};
  command.insert(command.end(), arguments.begin(), arguments.end());
  test::Options options;
  options.cwd = temp_.path();
  return test::run(command, options);
}

fs::path Workbench::checkpoint(const std::string& name, const std::string& run) const { return folder(run) / "checkpoints" / name; }

std::vector<config::Table> Workbench::rows(const std::string& run, bool eval) const {
  std::vector<config::Table> out;
  const fs::path path = folder(run) / "metrics.jsonl";
  for (const std::string& line : split(read_file(path), '\n')) {
    if (!line.empty()) {
      const config::Node row = config::parse_json(line, path.string());
      if ((row.table()->find("eval") != nullptr) == eval) {
        out.push_back(*row.table());
      }
    }
  }
  return out;
}

std::vector<config::Table> Workbench::steps(const std::string& run) const { return rows(run, false); }

std::vector<config::Table> Workbench::evals(const std::string& run) const {
  std::vector<config::Table> out;
  for (const config::Table& row : rows(run, true)) {
    out.push_back(*row.find("eval")->table());
  }
  return out;
}

void Workbench::cut(std::int64_t step, const std::string& run) const {
  const fs::path checkpoints = folder(run) / "checkpoints";
  std::vector<fs::path> later;
  for (const auto& entry : fs::directory_iterator(checkpoints)) {
    const std::string name = entry.path().filename().string();
    if (name == "latest" || (name.starts_with("step_") && std::stoll(name.substr(5)) > step)) {
      later.push_back(entry.path());
    }
  }
  for (const fs::path& path : later) {
    fs::remove_all(path);
  }
  fs::create_directory_symlink("step_" + std::to_string(step), checkpoints / "latest");
}

std::string Workbench::listing(const std::string& run) const {
  std::vector<std::string> lines;
  for (const auto& entry : fs::recursive_directory_iterator(folder(run))) {
    const auto time = fs::last_write_time(entry.path()).time_since_epoch().count();
    lines.push_back(format("{} {} {}", entry.path(), entry.is_regular_file() ? to_text(entry.file_size()) : "", time));
  }
  std::sort(lines.begin(), lines.end());
  return join(lines, "\n");
}

double real(const config::Table& row, const std::string& key) {
  const config::Node* node = row.find(key);
  if (!node) {
    throw std::runtime_error("a row has no " + key);
  }
  const auto* whole = std::get_if<std::int64_t>(&node->value);
  return whole ? static_cast<double>(*whole) : std::get<double>(node->value);
}

std::vector<double> column(const std::vector<config::Table>& rows, const std::string& key) {
  std::vector<double> out;
  for (const config::Table& row : rows) {
    out.push_back(real(row, key));
  }
  return out;
}

bool same_tensors(const fs::path& a, const fs::path& b) {
  const SafetensorsFile first(a), second(b);
  return first.names() == second.names() && std::all_of(first.names().begin(), first.names().end(), [&](const std::string& name) {
           return at::equal(first.tensor(name), second.tensor(name));
         });
}

}  // namespace kf::cases
