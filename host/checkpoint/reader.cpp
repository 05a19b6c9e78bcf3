#include "checkpoint/reader.h"

#include <utility>

#include "checkpoint/checkpoint_error.h"
#include "checkpoint/cpu_rng.h"
#include "checkpoint/foreign/distributed.h"
#include "checkpoint/huggingface/import.h"
#include "checkpoint/manager.h"
#include "checkpoint/weights_file.h"
#include "checkpoint/worker_state.h"
#include "config/huggingface/huggingface.h"
#include "core/plain_file.h"
#include "data/hub/model.h"

namespace kf {
namespace {

/// The tensors of a checkpoint and, under their names, the frozen weights that it leaves out, which the model has already.
NamedTensors with_left_out(const StoredTensors& stored, const LeftOut& left_out, Model& model) {
  std::map<std::string, at::Tensor> own;
  for (const auto& [name, tensor] : weights_of(model)) {
    if (left_out.contains(name)) {
      own[name] = left_out.as_it_was(name, tensor);
    }
  }
  NamedTensors out = named(stored);
  for (const auto& [name, tensor] : own) {
    out.names.push_back(name);
  }
  out.get = [get = out.get, own](const std::string& name) { return own.contains(name) ? own.at(name) : get(name); };
  out.ranged = {[kind = out.ranged->kind, own](const std::string& name) {
                  return own.contains(name) ? TensorKind{own.at(name).sizes().vec(), own.at(name).scalar_type()} : kind(name);
                },
                [read = out.ranged->read, own](const TensorPiece& into) {
                  if (!own.contains(into.name)) {
                    read(into);
                  }
                }};
  return out;
}

}  // namespace

CheckpointReader::CheckpointReader(fs::path checkpoint, FileCheck check)
    : path_(std::move(checkpoint)), content_(as_checkpoint_error([&] { return read_state(path_); })), check_(std::move(check)) {}

/// With the optimizer's come those that it alone needs, with the weights all others: what hooks keep, the job.
const StoredTensors& CheckpointReader::checked(std::optional<StoredTensors>& tensors, const char* file, const char* index) const {
  if (!tensors) {
    as_checkpoint_error([&] {
      std::map<std::string, FileDigest> own = content_.files;
      const bool optimizer = std::string_view(file) == kOptimizerFile;
      std::erase_if(own, [&](const auto& entry) { return entry.first.starts_with("optimizer") != optimizer; });
      check_(path_, own);
      tensors.emplace(path_ / (content_.files.contains(file) ? file : index));
    });
  }
  return *tensors;
}

const StoredTensors& CheckpointReader::weights() const { return checked(weights_, kModelFile, kModelIndex); }
const StoredTensors& CheckpointReader::moments() const { return checked(moments_, kOptimizerFile, kOptimizerIndex); }

void CheckpointReader::load_saved(Model& model, const WeightPlaces& places) const {
  const LeftOut& left_out = content_.left_out;
  if (left_out.names.empty()) {
    load_weights_from(weights(), model, places.rows, places.placements, places.rules);
    return;
  }
  check_frozen_whole(model, places.placements);
  const std::string base = places.frozen_from.empty() ? left_out.from : places.frozen_from;
  try {
    kf::load_weights(base, model, {places.rows, {}, places.placements, {}, places.check});
  } catch (Error& error) {
    throw error.context(
        format("{} leaves frozen weights out (checkpoint.save_frozen = false); they come from checkpoint.init_from", path_));
  }
  check_left_out(left_out, model, path_);
  const NamedTensors all = renamed(with_left_out(weights(), left_out, model), places.rules.names, path_);
  load_weights_from(all, weights().path(), model, places.rows, places.placements, places.rules);
}

void CheckpointReader::load_weights(Model& model, const WeightPlaces& places, WeightKind kind) const {
  as_checkpoint_error([&] {
    load_saved(model, places);
    load_kind(*this, kind, model, places.placements);
  });
}

OptimizerState CheckpointReader::stored_moments(Model& model, const Optimizer& optimizer, const WeightPlaces& at) const {
  const StoredTensors& stored = moments();
  const MomentPlaces places(model, at.placements);
  const MomentNames names(model, at.rules);
  const WorkerState workers(optimizer, stored.names());
  const auto each_here = [&](const auto& all, auto&& take) {
    for (const auto& [name, value] : all) {
      if (const std::string own = names.of(workers.own(name)); !own.empty() && !places.elsewhere(own)) {
        take(own, value);
      }
    }
  };
  OptimizerState out;
  out.owned = true;
  each_here(content_.optimizer_integers, [&](const std::string& name, std::int64_t number) { out.integers[name] = number; });
  each_here(content_.optimizer_reals, [&](const std::string& name, double number) { out.reals[name] = number; });
  for (const std::string& name : stored.names()) {
    const std::string own = names.of(workers.own(name));
    if (own.empty() || places.elsewhere(own)) {
      continue;
    }
    const Shape& shape = stored.shape(name);
    const Range range = places.range(own, shape);
    const at::Tensor tensor = at::empty(range.size, at::TensorOptions().dtype(stored.type(name)));
    stored.read({name, shape, range, tensor});
    out.tensors[own] = tensor;
  }
  if (workers.is_new()) {
    begin_at_outer(out, optimizer);
  }
  return out;
}

void CheckpointReader::load(Model& model, Optimizer& optimizer, const WeightPlaces& places, const StateRules& parts) const {
  as_checkpoint_error([&] {
    const OptimizerState stored = parts.optimizer ? stored_moments(model, optimizer, places) : OptimizerState();
    load_saved(model, places);
    const MomentPlaces here(model, places.placements);
    const auto elsewhere = [&](const std::string& name) { return here.elsewhere(name); };
    if (parts.all() && places.rules.strict && places.rules.exclude.empty()) {
      take_all(optimizer, stored, moments().path(), elsewhere);
    } else {
      take_common(optimizer, stored, parts, places.rules.strict, path_);
    }
    if (parts.rng) {
      set_cpu_rng_state(content_.cpu_rng, path_);
    }
  });
}

fs::path find_checkpoint(const fs::path& source, const FileCheck& check) {
  KF_CHECK(path_exists(source), Code::checkpoint, "{} does not exist", source);
  if (path_exists(source / kStateFile)) {
    return source;
  }
  for (const fs::path& folder : {source, source / "checkpoints"}) {
    if (const std::optional<fs::path> newest = CheckpointManager({.dir = folder, .keep_last = 3, .keep_forever = {}}).newest(check)) {
      return *newest;
    }
  }
  fail(Code::checkpoint, "{} is no checkpoint, and none lies in it or in its folder 'checkpoints'", source);
}

void load_weights(const fs::path& asked, Model& model, const WeightPlaces& places, WeightKind kind) {
  as_checkpoint_error([&] {
    const fs::path source = hub::locate(asked.string(), hub::ModelFiles::weights);
    KF_CHECK(path_exists(source), Code::checkpoint, "{} does not exist", source);
    KF_CHECK(kind == WeightKind::saved || (fs::is_directory(source) && !config::is_huggingface_folder(source)), Code::checkpoint,
             "{} is no checkpoint of kf-host and has one set of weights; leave the choice of weights (saved, average, raw) out", source);
    if (config::is_huggingface_folder(source)) {
      load_huggingface(source, model, places.rows, places.placements, places.rules);
    } else if (const auto distributed = fs::is_directory(source) ? find_distributed(source) : std::nullopt) {
      load_weights_from(open_distributed(*distributed), *distributed, model, places.rows, places.placements, places.rules);
    } else if (fs::is_directory(source)) {
      const fs::path found = find_checkpoint(source, places.check);
      const bool searched = found != source;  // so its files are checked
      CheckpointReader(found, searched ? FileCheck(checked_before) : places.check).load_weights(model, places, kind);
    } else {
      load_weights_file(source, model, places.rows, places.placements, places.rules);
    }
  });
}

}  // namespace kf
