#include "e2e/toy.h"

#include <catch2/catch.hpp>

#include <fstream>
#include <iterator>
#include <set>
#include <sstream>
#include <stdexcept>

namespace kf::test {
namespace {

// Plain products: which kernel is faster is a matter of microseconds, so two runs on a busy machine would part in last bits.
constexpr const char* kJob = R"([model]
dim = 32
n_layers = 2
n_heads = 4
n_kv_heads = 2
vocab_size = 257
max_seq_len = 64

[train]
batch_size = 4
seq_len = 32
max_steps = 10
grad_accum_steps = 2
mixed_precision = "fp32"
cpu_products = "plain"

[optimizer]
lr = 3e-3

[scheduler]
warmup_steps = 2

[data]
dataset_path = "text"
file_pattern = "*.txt"

[eval]
enabled = true
interval = 5
steps = 2
dataset_path = "text"
file_pattern = "b.txt"

[checkpoint]
interval = 5

[metrics]
log_interval = 1
)";

/// Enough text for two epochs and a half of ten steps.
std::string some_text(int seed) {
  std::string text;
  for (int i = 0; i < 120; ++i) {
    text += "line " + std::to_string(i * seed % 97) + " of a text that repeats itself, more or less; ";
  }
  return text;
}

}  // namespace

Toy::Toy() {
  dir_.write("toy.toml", kJob);
  dir_.write("text/a.txt", some_text(7));
  dir_.write("text/b.txt", some_text(31));
}

std::vector<std::string> Toy::command(const std::vector<std::string>& args) const {
  std::vector<std::string> argv{KF_HOST};
  argv.insert(argv.end(), args.begin(), args.end());
  return argv;
}

Finished Toy::host(const std::vector<std::string>& args) const {
  Options options;
  options.cwd = dir_.path();
  return run(command(args), options);
}

void Toy::trained(const std::vector<std::string>& more) const {
  namespace fs = std::filesystem;
  static const TempDir kept;
  static std::map<std::string, std::string> folders;  // by what makes a run
  std::string key = read("toy.toml") + read("text/a.txt") + read("text/b.txt");
  for (const std::string& word : more) {
    key += '\n' + word;
  }
  const auto copy = [](const fs::path& from, const fs::path& to) {
    fs::copy(from, to, fs::copy_options::recursive | fs::copy_options::copy_symlinks);
  };
  if (const auto known = folders.find(key); known != folders.end()) {
    fs::create_directories(dir_ / "runs");
    for (const fs::directory_entry& run : fs::directory_iterator(kept / known->second)) {
      copy(run.path(), dir_ / "runs" / run.path().filename());
    }
    return;
  }
  std::set<fs::path> before;
  for (const fs::directory_entry& run : fs::directory_iterator((fs::create_directories(dir_ / "runs"), dir_ / "runs"))) {
    before.insert(run.path());
  }
  const Finished done = train(more);
  INFO(done.out << done.err);
  REQUIRE(done.status == 0);
  const std::string name = std::to_string(folders.size());
  fs::create_directories(kept / name);
  for (const fs::directory_entry& run : fs::directory_iterator(dir_ / "runs")) {
    if (before.count(run.path()) == 0) {
      copy(run.path(), kept / name / run.path().filename());
    }
  }
  folders[key] = name;
}

Finished Toy::train(const std::vector<std::string>& more) const {
  std::vector<std::string> args{"toy.toml"};
  args.insert(args.end(), more.begin(), more.end());
  return host(args);
}

std::string Toy::read(const std::filesystem::path& name) const {
  std::ifstream in(dir_ / name, std::ios::binary);
  if (!in) {
    throw std::runtime_error("no file " + (dir_ / name).string());
  }
  return {std::istreambuf_iterator<char>(in), {}};
}

std::map<int, std::string> Toy::series(const std::string& run_name, const std::string& key) const {
  const auto field = [](const std::string& row, const std::string& name) -> std::string {
    const std::size_t at = row.find("\"" + name + "\": ");
    if (at == std::string::npos) {
      return "";
    }
    const std::size_t begin = at + name.size() + 4;
    return row.substr(begin, row.find_first_of(",}", begin) - begin);
  };
  std::map<int, std::string> found;
  std::istringstream rows(read("runs/" + run_name + "/metrics.jsonl"));
  for (std::string row; std::getline(rows, row);) {
    const bool eval_row = row.find("\"eval\"") != std::string::npos;
    if (const std::string value = field(row, key); !value.empty() && (!eval_row || key == "perplexity")) {
      const int step = std::stoi(field(row, "step"));
      INFO(row);
      REQUIRE(found.count(step) == 0);  // each step has one row
      found[step] = value;
    }
  }
  return found;
}

std::vector<std::string> commands_of(const std::filesystem::path& page) {
  std::ifstream in(page);
  REQUIRE(in);
  std::vector<std::string> commands;
  bool inside = false;
  for (std::string line; std::getline(in, line);) {
    if (line.rfind("```", 0) == 0) {
      inside = line == "```sh";
    } else if (inside && line.find("kf-host ") != std::string::npos) {
      commands.push_back(line);
    }
  }
  return commands;
}

}  // namespace kf::test
