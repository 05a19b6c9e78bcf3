#include "checkpoint/manager.h"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/core/Generator.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/empty.h>

#include <algorithm>
#include <csignal>
#include <cstring>
#include <mutex>
#include <utility>

#include "checkpoint/files/folder.h"
#include "checkpoint/files/safetensors.h"
#include "checkpoint/files/weights.h"
#include "checkpoint/huggingface/import.h"
#include "checkpoint/state_file.h"
#include "config/huggingface/huggingface.h"
#include "core/error.h"
#include "core/log.h"
#include "core/plain_file.h"
#include "data/hub/model.h"

namespace kf {
namespace {

constexpr const char* kLatest = "latest";

/// Whatever goes wrong with files here is a checkpoint error; a script's own errors (a Lua optimizer's state) stay what they are.
template <class Body>
auto as_checkpoint_error(Body&& body) {
  try {
    return body();
  } catch (const fs::filesystem_error& e) {
    throw Error(Code::checkpoint, e.what());
  } catch (const Error& e) {
    throw Error(e.code() == Code::script ? Code::script : Code::checkpoint, e.what());
  }
}

/// What is left undone here costs disk space, not the checkpoint that has just been saved.
template <class Body>
void tidy_up(Body&& body) {
  try {
    body();
  } catch (const fs::filesystem_error& e) {
    log::warn("old checkpoints were not removed: {}", e.what());
  }
}

std::string cpu_rng_state() {
  at::Generator generator = at::detail::getDefaultCPUGenerator();  // a handle to the one generator
  const std::lock_guard lock(generator.mutex());
  const at::Tensor state = generator.get_state();
  return {static_cast<const char*>(state.const_data_ptr()), state.nbytes()};
}

void set_cpu_rng_state(const std::string& bytes, const fs::path& checkpoint) {
  const std::size_t size = cpu_rng_state().size();
  KF_CHECK(bytes.size() == size, Code::checkpoint, "{}: the random generator's state has {} bytes instead of {}", checkpoint, bytes.size(),
           size);
  const at::Tensor state = at::empty({static_cast<std::int64_t>(size)}, at::kByte);
  std::memcpy(state.mutable_data_ptr(), bytes.data(), size);
  at::Generator generator = at::detail::getDefaultCPUGenerator();
  const std::lock_guard lock(generator.mutex());
  generator.set_state(state);
}

FileDigest write_text(const fs::path& path, const std::string& text) {
  DurableFile file(path);
  file.write(text);
  return file.commit();
}

/// Writes the files of a checkpoint into `folder`; returns the text of state.json, which comes last.
std::string write_files(const fs::path& folder, const CheckpointState& state, Model& model, Optimizer& optimizer, const LeftOut& left_out) {
  const OptimizerState moments = optimizer.state();
  StateFile content{state, cpu_rng_state(), moments.integers, moments.reals, {}, left_out};
  std::vector<std::pair<std::string, at::Tensor>> weights = weights_of(model);
  std::erase_if(weights, [&](const auto& weight) { return left_out.contains(weight.first); });
  content.files[kModelFile] = write_safetensors(folder / kModelFile, weights, {{"format", "pt"}});
  content.files[kOptimizerFile] = write_safetensors(folder / kOptimizerFile, {moments.tensors.begin(), moments.tensors.end()});
  content.files[kJobFile] = write_text(folder / kJobFile, state.job_toml);
  const std::string text = to_text(content);
  write_text(folder / kStateFile, text);
  return text;
}

/// Why the checkpoint cannot be used; "" when it can.
std::string fault_of(const fs::path& checkpoint) {
  try {
    std::error_code error;
    KF_CHECK(fs::is_directory(checkpoint, error), Code::checkpoint, "{} {}", checkpoint,
             path_exists(checkpoint) ? "is no folder" : "does not exist");
    verify_files(checkpoint, read_state_file(checkpoint));
    return {};
  } catch (const std::exception& e) {
    return e.what();
  }
}

bool holds_state(const fs::path& checkpoint, const std::string& state_text) {
  return path_exists(checkpoint / kStateFile) && fault_of(checkpoint).empty() && read_file(checkpoint / kStateFile) == state_text;
}

template <class Map>
void compare_names(const Map& stored, const Map& taken, std::vector<std::string>& unknown, std::vector<std::string>& missing) {
  for (const auto& [name, value] : stored) {
    if (taken.count(name) == 0) {
      unknown.push_back(name);
    }
  }
  for (const auto& [name, value] : taken) {
    if (stored.count(name) == 0) {
      missing.push_back(name);
    }
  }
}

/// An optimizer that leaves part of the state behind, or has more than the checkpoint, would go on with fresh moments without a word.
void check_taken(const OptimizerState& stored, const OptimizerState& taken, const fs::path& path) {
  std::vector<std::string> unknown, missing;
  compare_names(stored.tensors, taken.tensors, unknown, missing);
  compare_names(stored.integers, taken.integers, unknown, missing);
  compare_names(stored.reals, taken.reals, unknown, missing);
  const std::string text = list_names("unknown to the optimizer", unknown) + list_names("missing in the file", missing);
  KF_CHECK(text.empty(), Code::checkpoint,
           "{} does not hold the state of this optimizer{}\n  checkpoint.init_from starts a new run from the weights alone", path, text);
}

/// The weights of a checkpoint; those that it leaves out come from where they came from first.
void load_with_left_out(const SafetensorsFile& file, const fs::path& checkpoint, const LeftOut& left_out, const std::string& frozen_from,
                        Model& model, const VocabRows& rows = {}) {
  if (left_out.names.empty()) {
    load_weights_from(file, checkpoint / kModelFile, model, rows);
    return;
  }
  const std::string base = frozen_from.empty() ? left_out.from : frozen_from;
  try {
    CheckpointManager::load_weights(base, model, rows);
  } catch (Error& error) {
    throw error.context(
        format("{} leaves frozen weights out (checkpoint.save_frozen = false); they come from checkpoint.init_from", checkpoint));
  }
  check_left_out(left_out, model, checkpoint);
  std::map<std::string, at::Tensor> tensors;
  for (const std::string& name : file.names()) {
    tensors[name] = file.tensor(name);
  }
  for (const auto& [name, tensor] : weights_of(model)) {
    if (left_out.contains(name)) {
      tensors[name] = left_out.as_it_was(name, tensor);  // just loaded
    }
  }
  NamedTensors all;
  for (const auto& [name, tensor] : tensors) {
    all.names.push_back(name);
  }
  all.get = [&tensors](const std::string& name) { return tensors.at(name); };
  load_weights_from(all, checkpoint / kModelFile, model, rows);
}

/// Steps below `dir`, highest first.
std::vector<std::int64_t> steps_in(const fs::path& dir) {
  std::vector<std::int64_t> steps;
  for (const fs::directory_entry& entry : fs::directory_iterator(dir)) {
    std::error_code loop;  // a link to itself is no folder
    if (const auto step = step_of(entry.path().filename().string()); step && entry.is_directory(loop)) {
      steps.push_back(*step);
    }
  }
  std::sort(steps.rbegin(), steps.rend());
  return steps;
}

std::string folder_name(std::int64_t step) { return "step_" + std::to_string(step); }

void check_name(const std::string& name) {
  const std::string problem = save_name_problem(name);
  KF_CHECK(problem.empty(), Code::checkpoint, "{} cannot name a checkpoint: it {}", kf::quoted(name), problem);
}

/// The newest `keep_last` steps up to `step` stay, and so do milestones and what `latest` names. Higher steps, left by a run that was set
/// back, are not counted and not touched.
void remove_old(const CheckpointOptions& options, std::int64_t step) {
  if (options.keep_last <= 0) {
    return;
  }
  std::int64_t kept = 0;
  for (const std::int64_t old : steps_in(options.dir)) {
    const bool counted = old <= step && kept++ < options.keep_last;
    if (old < step && !counted && !(options.keep_forever && options.keep_forever(old))) {
      remove_folder(options.dir / folder_name(old));
    }
  }
}

}  // namespace

CheckpointManager::CheckpointManager(CheckpointOptions options) : options_(std::move(options)) {
  // A limit on file sizes (ulimit -f) then makes write() fail, which is reported, instead of ending the process without a word.
  std::signal(SIGXFSZ, SIG_IGN);
}

fs::path CheckpointManager::save(const CheckpointState& state, Model& model, Optimizer& optimizer, const std::string& name) {
  if (!name.empty()) {
    check_name(name);
  }
  return as_checkpoint_error([&] {
    const fs::path target = options_.dir / (name.empty() ? folder_name(state.run.step) : name);
    KF_CHECK(name.empty() || !fs::exists(fs::symlink_status(target)) || path_exists(target / kStateFile), Code::checkpoint,
             "{} exists and is no checkpoint; choose another name", target);
    fs::create_directories(options_.dir);
    tidy_up([&] { remove_leftovers(options_.dir); });
    PendingFolder folder(target);
    if (!left_out_) {
      left_out_ = options_.frozen_from.empty() ? LeftOut() : frozen_weights(model, options_.frozen_from);
    }
    const std::string text = write_files(folder.path(), state, model, optimizer, *left_out_);
    if (!holds_state(target, text)) {
      folder.commit();
    }
    if (name.empty()) {
      point_link(options_.dir / kLatest, folder_name(state.run.step));
      tidy_up([&] { remove_old(options_, state.run.step); });
    }
    return target;
  });
}

std::optional<fs::path> CheckpointManager::newest() const {
  return as_checkpoint_error([&]() -> std::optional<fs::path> {
    std::error_code unreadable;  // a circle of links, say: making the folder will tell
    if (!fs::is_directory(options_.dir, unreadable)) {
      return std::nullopt;
    }
    const std::vector<std::int64_t> steps = steps_in(options_.dir);
    std::vector<fs::path> candidates;
    const fs::path link = options_.dir / kLatest;
    if (fs::is_symlink(link)) {
      candidates.push_back(options_.dir / fs::read_symlink(link));
    }
    for (const std::int64_t step : steps) {
      const fs::path path = options_.dir / folder_name(step);
      if (candidates.empty() || path != candidates.front()) {
        candidates.push_back(path);
      }
    }
    for (const fs::path& candidate : candidates) {
      const std::string fault = fault_of(candidate);
      if (fault.empty()) {
        const auto step = step_of(candidate.filename().string());
        if (step && steps.front() > *step) {
          log::info("going on from {}; {} is above it and will be run again", candidate.filename(), folder_name(steps.front()));
        }
        return candidate;
      }
      log::warn("skipped the checkpoint {}: {}", candidate, fault);
    }
    KF_CHECK(candidates.empty(), Code::checkpoint,
             "none of the checkpoints in {} can be used; move them away, or start over with run.fresh = true", options_.dir);
    return std::nullopt;
  });
}

fs::path CheckpointManager::find(const fs::path& source) {
  KF_CHECK(path_exists(source), Code::checkpoint, "{} does not exist", source);
  if (path_exists(source / kStateFile)) {
    return source;
  }
  for (const fs::path& folder : {source, source / "checkpoints"}) {
    CheckpointOptions options;
    options.dir = folder;
    if (const std::optional<fs::path> newest = CheckpointManager(std::move(options)).newest()) {
      return *newest;
    }
  }
  fail(Code::checkpoint, "{} is no checkpoint, and none lies in it or in its folder 'checkpoints'", source);
}

CheckpointState CheckpointManager::peek(const fs::path& checkpoint) {
  return as_checkpoint_error([&] {
    StateFile content = read_state_file(checkpoint);
    const FileDigest& expected = content.files.at(kJobFile);
    content.state.job_toml = read_regular_file(checkpoint / kJobFile, std::max<std::uint64_t>(expected.bytes, 1 << 20));
    const FileDigest digest{content.state.job_toml.size(), extend_crc32(0, content.state.job_toml.data(), content.state.job_toml.size())};
    KF_CHECK(digest == expected, Code::checkpoint, "{} is damaged: its checksum does not match", checkpoint / kJobFile);
    return std::move(content.state);
  });
}

CheckpointState CheckpointManager::load(const fs::path& checkpoint, Model& model, Optimizer& optimizer, const std::string& frozen_from) {
  return as_checkpoint_error([&] {
    CheckpointState state = peek(checkpoint);  // all files of the state are looked at before a weight is touched
    const StateFile content = read_state_file(checkpoint);
    verify_files(checkpoint, content);
    const SafetensorsFile weights(checkpoint / kModelFile);
    const SafetensorsFile tensors(checkpoint / kOptimizerFile);
    OptimizerState moments{{}, content.optimizer_integers, content.optimizer_reals};
    for (const std::string& name : tensors.names()) {
      moments.tensors[name] = tensors.tensor(name);
    }
    load_with_left_out(weights, checkpoint, content.left_out, frozen_from, model);
    optimizer.load(moments);
    check_taken(moments, optimizer.state(), checkpoint / kOptimizerFile);
    set_cpu_rng_state(content.cpu_rng, checkpoint);
    return state;
  });
}

void CheckpointManager::load_weights(const fs::path& asked, Model& model, const VocabRows& rows, WeightKind kind) {
  as_checkpoint_error([&] {
    const fs::path source = hub::locate(asked.string(), hub::ModelPart::weights);
    KF_CHECK(path_exists(source), Code::checkpoint, "{} does not exist", source);
    KF_CHECK(kind == WeightKind::saved || (fs::is_directory(source) && !config::is_huggingface_folder(source)), Code::checkpoint,
             "{} is no checkpoint of kf-host and has one set of weights; leave the choice of weights (saved, average, raw) out", source);
    if (config::is_huggingface_folder(source)) {
      load_huggingface(source, model, rows);
      return;
    }
    if (fs::is_directory(source)) {
      const fs::path folder = find(source);
      const StateFile content = read_state_file(folder);
      verify_files(folder, content);
      load_with_left_out(SafetensorsFile(folder / kModelFile), folder, content.left_out, {}, model, rows);
      load_kind(folder, kind, model);
    } else {
      load_weights_from(SafetensorsFile(source), source, model, rows);
    }
  });
}

}  // namespace kf
