#include "bench/checkpoint_bench.h"

#include <ATen/ATen.h>
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <sstream>

#include "bench/goals.h"
#include "bench/step_runs.h"
#include "checkpoint/reader.h"
#include "checkpoint/writer.h"
#include "config/load/load.h"
#include "core/descriptor.h"
#include "core/error.h"
#include "core/plain_file.h"
#include "model/transformer/build.h"
#include "optim/adamw.h"
#include "parallel/one_rank.h"
#include "registry/registries.h"
#include "support/process.h"
#include "train/loop/saver.h"

namespace kf::bench {
namespace {

constexpr int kRounds = 3;

double seconds_of(const std::function<void()>& body) {
  const auto begin = std::chrono::steady_clock::now();
  body();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

config::Config job(const Registries& registries, std::int64_t layers) {
  config::Request request;
  request.overrides = {"--model.dim=1024",
                       "--model.n_layers=" + std::to_string(layers),
                       "--model.n_heads=8",
                       "--model.vocab_size=512",
                       "--model.max_seq_len=64",
                       "--train.seq_len=64",
                       "--train.mixed_precision=fp32"};
  return config::load_or_fail(request, registries.catalog()).config;
}

/// A model, its optimizer and what a checkpoint of them says.
struct Saved {
  Saved(const Registries& registries, std::int64_t layers, bool moments) : model(build_model(job(registries, layers), registries)) {
    materialize(*model, at::kCPU, at::kFloat, 1);
    optimizer = std::make_unique<AdamW>(decay_groups(model->parameters(), 0.1), AdamWOptions{});
    if (moments) {
      for (const ParameterPtr& parameter : model->parameters()) {
        parameter->set_gradient(at::zeros(parameter->shape));
      }
      optimizer->step(1e-4);
      for (const ParameterPtr& parameter : model->parameters()) {
        parameter->clear_gradient();
      }
    }
    state.job_toml = "";
  }
  std::shared_ptr<Model> model;
  std::unique_ptr<AdamW> optimizer;
  CheckpointState state;
};

std::uint64_t bytes_below(const fs::path& folder) {
  std::uint64_t bytes = 0;
  for (const fs::directory_entry& entry : fs::recursive_directory_iterator(folder)) {
    bytes += entry.is_regular_file() ? entry.file_size() : 0;
  }
  return bytes;
}

/// Has the system forget what it holds of the files, so that they come from the disk.
void forget(const fs::path& folder) {
  for (const fs::directory_entry& entry : fs::recursive_directory_iterator(folder)) {
    if (entry.is_regular_file()) {
      const Descriptor file(::open(entry.path().c_str(), O_RDONLY | O_CLOEXEC));
      ::fsync(file.get());
      ::posix_fadvise(file.get(), 0, 0, POSIX_FADV_DONTNEED);
    }
  }
}

void dd(const std::vector<std::string>& words) {
  std::vector<std::string> argv{"dd", "bs=4M", "status=none"};
  argv.insert(argv.end(), words.begin(), words.end());
  KF_CHECK(test::run(argv).status == 0, Code::other, "dd failed");
}

void print(const std::string& what, double seconds, double bytes, double reference_seconds, const std::string& reference) {
  std::printf("%-40s %8.3f s %8.1f MB/s   %-40s %8.3f s %8.1f MB/s   speed %5.2f x\n", what.c_str(), seconds, bytes / seconds / 1e6,
              reference.c_str(), reference_seconds, bytes / reference_seconds / 1e6, reference_seconds / seconds);
  std::fflush(stdout);
}

/// Seconds of each kind ("torch.save", ...) that a script of PyTorch takes for tensors of as many bytes; empty where there is no torch.
std::map<std::string, double> seconds_of_torch(const fs::path& folder, double bytes) {
  const char* const given = std::getenv("KF_PYTHON");
  test::Options options;
  options.timeout = std::chrono::minutes(30);
  if (given == nullptr && has_peer()) {
    options.env = peer_environment();
  }
  const test::Finished done = test::run(
      {given != nullptr ? given : "python3", KF_SOURCE_DIR "/tests/bench/torch_save.py", folder.string(), std::to_string(bytes)}, options);
  std::map<std::string, double> out;
  std::istringstream lines(done.status == 0 ? done.out : "");
  std::string name;
  double seconds = 0;
  while (lines >> name >> seconds) {
    out[name] = seconds;
  }
  return out;
}

/// The fastest of some rounds, taken in turns.
struct Best {
  double seconds = std::numeric_limits<double>::infinity();
  void take(double other) { seconds = std::min(seconds, other); }
};

void against_dd(const Saved& saved, CheckpointManager& checkpoints, const fs::path& folder, Goals& goals) {
  CheckpointWriter writer(checkpoints);
  OneRank alone;
  Best save, load, raw_save, raw_load;
  double bytes = 0;
  CheckpointState state = saved.state;
  std::map<std::string, Best> torch;
  for (int round = 0; round < kRounds; ++round) {
    state.run.step = round + 1;
    fs::path path;
    save.take(seconds_of([&] { path = writer.save(state, *saved.model, *saved.optimizer, alone); }));
    bytes = static_cast<double>(bytes_below(path));
    const std::string blocks = "count=" + std::to_string(static_cast<std::int64_t>(bytes / (4 << 20)));
    const std::string raw = (folder / "raw").string();
    raw_save.take(seconds_of([&] { dd({"if=/dev/zero", "of=" + raw, blocks, "conv=fsync"}); }));
    for (const auto& [name, seconds] : seconds_of_torch(folder, bytes)) {
      torch[name].take(seconds);
    }
    forget(folder);
    load.take(seconds_of([&] { CheckpointReader(path).load(*saved.model, *saved.optimizer); }));
    forget(folder);
    raw_load.take(seconds_of([&] { dd({"if=" + raw, "of=/dev/null", blocks}); }));
  }
  goals.seen("a save / dd of as many bytes, with fsync", save.seconds / raw_save.seconds, "x");
  goals.seen("a load, verified / dd of as many bytes", load.seconds / raw_load.seconds, "x");
  print("save", save.seconds, bytes, raw_save.seconds, "dd of as many bytes, with fsync");
  print("load, verified, from the disk", load.seconds, bytes, raw_load.seconds, "dd of as many bytes");
  for (const auto& [name, best] : torch) {
    const bool loads = name.find("load") != std::string::npos;
    print(loads ? "load" : "save", loads ? load.seconds : save.seconds, bytes, best.seconds, name);
  }
  if (torch.empty()) {
    std::printf("no Python with torch was found (KF_PYTHON): torch.save and distributed checkpoints are left out\n");
  }
}

void stall(const Saved& saved, CheckpointManager& checkpoints, Goals& goals) {
  CheckpointWriter writer(checkpoints);
  CheckpointState state = saved.state;
  Best behind, before;
  for (int round = 0; round < kRounds; ++round) {
    for (const bool async : {false, true}) {
      SaverOptions options;
      options.behind = async;
      options.keeps_buffers = async;
      Saver saver(options, checkpoints, writer, World());
      const auto save = [&](std::int64_t step) {
        state.run.step = step;
        return seconds_of([&] {
          saver.prepare(step, "", {});
          saver.begin(state, *saved.model, *saved.optimizer);
          if (!async) {
            saver.end();
          }
        });
      };
      save(100 + 4 * round);  // makes the buffers that stay
      saver.end();
      (async ? behind : before).take(save(101 + 4 * round));
      saver.end();
    }
  }
  std::printf("%-40s %8.3f s                 %-40s %8.3f s                 share %5.1f %%\n", "stall of a save behind the training",
              behind.seconds, "of a save by the training thread", before.seconds, 100 * behind.seconds / before.seconds);
  goals.seen("stall of a save behind the training / of one before it", behind.seconds / before.seconds, "x");
}

/// kB of a line of /proc/self/status.
std::int64_t status_kb(const std::string& name) {
  std::istringstream lines(read_file("/proc/self/status"));
  for (std::string line; std::getline(lines, line);) {
    if (line.rfind(name + ":", 0) == 0) {
      return std::atoll(line.c_str() + name.size() + 1);
    }
  }
  return 0;
}

constexpr std::int64_t kLargeLayers = 40;  // of 12.6 M weights

}  // namespace

void bench_load_memory(const Registries& registries, const std::string& checkpoint) {
  const std::shared_ptr<Model> model = build_model(job(registries, kLargeLayers), registries);
  const double before = static_cast<double>(status_kb("VmRSS")) * 1024;
  materialize(*model, at::kCPU, at::kFloat, 1, at::kFloat, [](const Parameter&) { return false; });
  const double seconds = seconds_of([&] { load_weights(checkpoint, *model); });
  double bytes = 0;
  for (const ParameterPtr& parameter : model->parameters()) {
    bytes += static_cast<double>(parameter->master.nbytes());
  }
  std::printf("loading %.0f MB of weights: %.2f s, peak %.0f MB above the weights (%.0f MB before)\n", bytes / 1e6, seconds,
              (static_cast<double>(status_kb("VmHWM")) * 1024 - before - bytes) / 1e6, before / 1e6);
}

void bench_checkpoint(const Registries& registries, const std::string& where, Goals& goals) {
  const fs::path folder = fs::path(where) / ("kf-bench-" + std::to_string(::getpid()));
  fs::create_directories(folder);
  const auto remove = [](const fs::path* path) { fs::remove_all(*path); };
  const std::unique_ptr<const fs::path, decltype(remove)> removed(&folder, remove);
  {
    CheckpointManager checkpoints({.dir = folder / "small", .keep_last = 1});
    const Saved saved(registries, 4, true);
    against_dd(saved, checkpoints, folder, goals);
    stall(saved, checkpoints, goals);
  }
  CheckpointManager checkpoints({.dir = folder / "large", .keep_last = 1});
  fs::path path;
  {
    const Saved large(registries, kLargeLayers, false);
    CheckpointWriter writer(checkpoints);
    OneRank alone;
    CheckpointState state = large.state;
    state.run.step = 1;
    path = writer.save(state, *large.model, *large.optimizer, alone);
  }
  Best open;
  for (int round = 0; round < 20; ++round) {
    open.take(seconds_of([&] { const CheckpointReader reader(path); }));
  }
  std::printf("opening a checkpoint of %.0f MB: %.2f ms\n", static_cast<double>(bytes_below(path)) / 1e6, open.seconds * 1e3);
  std::printf("%s", test::run({fs::read_symlink("/proc/self/exe").string(), "load-memory", path.string()}).out.c_str());
}

}  // namespace kf::bench
