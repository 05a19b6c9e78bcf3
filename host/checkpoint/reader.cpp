#include "checkpoint/reader.h"

#include <utility>

#include "checkpoint/checkpoint_error.h"
#include "checkpoint/cpu_rng.h"
#include "checkpoint/foreign/distributed.h"
#include "checkpoint/huggingface/import.h"
#include "checkpoint/manager.h"
#include "checkpoint/weights_file.h"
#include "config/huggingface/huggingface.h"
#include "core/plain_file.h"
#include "data/hub/model.h"

namespace kf {
namespace {

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

CheckpointReader::CheckpointReader(fs::path checkpoint)
    : path_(std::move(checkpoint)), content_(as_checkpoint_error([&] { return read_state(path_); })) {}

void CheckpointReader::verify() const {
  if (weights_) {
    return;
  }
  as_checkpoint_error([&] {
    verify_files(path_, content_);
    const auto open = [&](const char* file, const char* index) {
      return StoredTensors(path_ / (content_.files.contains(file) ? file : index));
    };
    moments_.emplace(open(kOptimizerFile, kOptimizerIndex));
    weights_.emplace(open(kModelFile, kModelIndex));
  });
}

const StoredTensors& CheckpointReader::weights() const {
  verify();
  return *weights_;
}

const StoredTensors& CheckpointReader::moments() const {
  verify();
  return *moments_;
}

void CheckpointReader::load_saved(Model& model, const WeightPlaces& places) const {
  const LeftOut& left_out = content_.left_out;
  if (left_out.names.empty()) {
    load_weights_from(weights(), model, places.rows, places.placements);
    return;
  }
  check_frozen_whole(model, places.placements);
  const std::string base = places.frozen_from.empty() ? left_out.from : places.frozen_from;
  try {
    kf::load_weights(base, model, {places.rows, {}, places.placements});
  } catch (Error& error) {
    throw error.context(
        format("{} leaves frozen weights out (checkpoint.save_frozen = false); they come from checkpoint.init_from", path_));
  }
  check_left_out(left_out, model, path_);
  load_weights_from(with_left_out(weights(), left_out, model), weights().path(), model, places.rows, places.placements);
}

void CheckpointReader::load_weights(Model& model, const WeightPlaces& places, WeightKind kind) const {
  as_checkpoint_error([&] {
    verify();
    load_saved(model, places);
    load_kind(*this, kind, model, places.placements);
  });
}

OptimizerState CheckpointReader::stored_moments(Model& model, const Placements& placements) const {
  const StoredTensors& stored = moments();
  const MomentPlaces places(model, placements);
  OptimizerState out{{}, content_.optimizer_integers, content_.optimizer_reals};
  std::erase_if(out.integers, [&](const auto& number) { return places.elsewhere(number.first); });
  std::erase_if(out.reals, [&](const auto& number) { return places.elsewhere(number.first); });
  for (const std::string& name : stored.names()) {
    if (places.elsewhere(name)) {
      continue;
    }
    const Shape& shape = stored.shape(name);
    const Range range = places.range(name, shape);
    const at::Tensor tensor = at::empty(range.size, at::TensorOptions().dtype(stored.type(name)));
    stored.read({name, shape, range, tensor});
    out.tensors[name] = tensor;
  }
  return out;
}

void CheckpointReader::load(Model& model, Optimizer& optimizer, const WeightPlaces& places) const {
  as_checkpoint_error([&] {
    const OptimizerState stored = stored_moments(model, places.placements);
    load_saved(model, places);
    optimizer.load(stored);
    OptimizerState taken = optimizer.state();
    const MomentPlaces here(model, places.placements);
    std::erase_if(taken.tensors, [&](const auto& tensor) { return here.elsewhere(tensor.first); });
    check_taken(stored, taken, moments().path());
    set_cpu_rng_state(content_.cpu_rng, path_);
  });
}

fs::path find_checkpoint(const fs::path& source) {
  KF_CHECK(path_exists(source), Code::checkpoint, "{} does not exist", source);
  if (path_exists(source / kStateFile)) {
    return source;
  }
  for (const fs::path& folder : {source, source / "checkpoints"}) {
    if (const std::optional<fs::path> newest = CheckpointManager({.dir = folder, .keep_last = 3, .keep_forever = {}}).newest()) {
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
      load_huggingface(source, model, places.rows, places.placements);
    } else if (const auto distributed = fs::is_directory(source) ? find_distributed(source) : std::nullopt) {
      load_weights_from(open_distributed(*distributed), *distributed, model, places.rows, places.placements);
    } else if (fs::is_directory(source)) {
      CheckpointReader(find_checkpoint(source)).load_weights(model, {places.rows, {}, places.placements}, kind);
    } else {
      load_weights_file(source, model, places.rows, places.placements);
    }
  });
}

}  // namespace kf
