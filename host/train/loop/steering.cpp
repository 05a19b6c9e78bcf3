#include "train/loop/steering.h"

#include <algorithm>

#include "core/error.h"
#include "train/loop/agree.h"

namespace kf {
namespace {

using config::Array;
using config::Node;
using config::Table;

Node to_node(const DataChange& change) {
  Table out;
  if (change.weights) {
    Table weights;
    for (const auto& [name, weight] : *change.weights) {
      weights[name] = Node(weight);
    }
    out["weights"] = Node(std::move(weights));
  }
  if (change.batch_size) {
    out["batch_size"] = Node(*change.batch_size);
  }
  if (change.seq_len) {
    out["seq_len"] = Node(*change.seq_len);
  }
  return Node(std::move(out));
}

const Node& entry(const Node& state, const char* key) {
  const Node* const found = state.table() != nullptr ? state.table()->find(key) : nullptr;
  KF_CHECK(found != nullptr, Code::checkpoint, "what the checkpoint says of the run's course lacks '{}'", key);
  return *found;
}

template <class T>
T value(const Node& state, const char* key) {
  const T* const found = std::get_if<T>(&entry(state, key).value);
  KF_CHECK(found != nullptr, Code::checkpoint, "what the checkpoint says of the run's course is damaged at '{}'", key);
  return *found;
}

template <class T>
std::optional<T> optional_value(const Node& state, const char* key) {
  return state.table() != nullptr && state.table()->find(key) != nullptr ? std::optional<T>(value<T>(state, key)) : std::nullopt;
}

DataChange data_change(const Node& node) {
  DataChange out;
  out.batch_size = optional_value<std::int64_t>(node, "batch_size");
  out.seq_len = optional_value<std::int64_t>(node, "seq_len");
  if (node.table() != nullptr && node.table()->find("weights") != nullptr) {
    out.weights.emplace();
    for (const auto& [name, weight] : value<Table>(node, "weights")) {
      (*out.weights)[name] = std::get<double>(weight.value);
    }
  }
  return out;
}

Array to_array(const std::vector<std::string>& names) {
  Array out;
  for (const std::string& name : names) {
    out.emplace_back(name);
  }
  return out;
}

}  // namespace

/// The loader's batches, but for those that were left out.
class Steering::Data final : public Loader {
 public:
  explicit Data(Loader& loader) : loader_(loader) {}

  Batch batch(std::int64_t index) override { return loader_.batch(index + skipped); }
  std::int64_t batches_per_epoch() const override { return loader_.batches_per_epoch(); }
  double epochs(std::int64_t index) const override { return loader_.epochs(index + skipped); }
  std::int64_t end() const override { return loader_.end() == kEndless ? kEndless : loader_.end() - skipped; }
  std::vector<std::string> sources() const override { return loader_.sources(); }
  std::vector<double> passes(std::int64_t index) override { return loader_.passes(index + skipped); }
  std::string describe() const override { return loader_.describe(); }
  std::string fingerprint() const override { return loader_.fingerprint(); }
  void check(const DataChange& change) const override { loader_.check(change); }
  void change(std::int64_t index, const DataChange& change) override { loader_.change(index, change); }

  std::int64_t skipped = 0;  // micro-batches

 private:
  Loader& loader_;
};

Steering::Steering(Model& model, Stepper& stepper, Loader& loader, Phases phases, const World& world)
    : stepper_(stepper), world_(world), data_(std::make_unique<Data>(loader)), phases_(std::move(phases)), freezer_(model.parameters()) {}

void check_phases(const Phases& phases, Model& model, const Loader& loader) {
  const Freezer freezer(model.parameters());
  for (std::size_t i = 0; i < phases.all().size(); ++i) {
    const Phase& phase = phases.all()[i];
    freezer.check(phase.freeze, true, format("phases[{}].freeze", i));
    if (phase.data != DataChange()) {
      try {
        loader.check(phase.data);
      } catch (Error& error) {
        throw error.context(format("in phases[{}] ('{}')", i, phase.name));
      }
    }
  }
}

Steering::~Steering() = default;

Loader& Steering::data() { return *data_; }
std::int64_t Steering::end() const { return data_->end(); }

double Steering::epoch(std::int64_t step) const { return data_->epochs(stepper_.first_micro(step)); }

void Steering::begin() {
  if (!phases_.empty()) {
    enter(0);
  }
}

bool Steering::advance(HookContext& context, bool ask) {
  bool changed = false;
  while (!phases_.empty() && any_of(phases_.over(context, ask), world_.all())) {
    phases_.advance(context.state.step);
    enter(context.state.step);
    changed = true;
  }
  return changed;
}

/// What the phase changes against the job goes into force, what the one before it changed and this one does not goes back.
void Steering::enter(std::int64_t step) {
  const Phase* const phase = phases_.current();
  const DataChange wanted = phase != nullptr ? phase->data : DataChange();
  DataChange change;
  if (wanted.weights != in_force_.weights) {
    change.weights = wanted.weights.value_or(std::map<std::string, double>());
  }
  if (wanted.batch_size != in_force_.batch_size) {
    change.batch_size = wanted.batch_size.value_or(stepper_.job_batch_size());
  }
  if (wanted.seq_len != in_force_.seq_len) {
    change.seq_len = wanted.seq_len.value_or(stepper_.job_seq_len());
  }
  if (change != DataChange()) {
    change_data(stepper_.first_micro(step) + data_->skipped, change);
  }
  in_force_ = wanted;
  freezer_.set_phase(phase != nullptr ? phase->freeze : std::vector<std::string>());
  stepper_.objective().use_loss(phase != nullptr ? phase->loss.get() : nullptr);
}

void Steering::change_data(std::int64_t micro, const DataChange& change) {
  data_->change(micro, change);
  changes_.push_back({micro, change});
}

void Steering::set_loss_weight(const std::string& name, double weight) {
  loss_weights_[name] = weight;
  stepper_.objective().set_weight(name, weight);
}

void Steering::apply(const Controls& controls, std::int64_t step) {
  lr_scale_ = controls.lr_scale.value_or(lr_scale_);
  if (controls.mixture) {
    change_data(stepper_.first_micro(step) + data_->skipped, {controls.mixture, {}, {}});
  }
  for (const auto& [name, weight] : controls.loss_weights) {
    set_loss_weight(name, weight);
  }
  freezer_.set(controls.freezing);
}

void Steering::roll_back(const Node& saved, std::int64_t from, std::int64_t to) {
  data_->skipped += stepper_.first_micro(from) - stepper_.first_micro(to);
  if (!phases_.empty()) {
    phases_.load(entry(saved, "phase"), to);
    enter(to);
  }
}

Node Steering::state() const {
  Array changes;
  for (const Change& change : changes_) {
    Table row;
    row["micro"] = Node(change.micro);
    row["what"] = to_node(change.what);
    changes.emplace_back(std::move(row));
  }
  Table weights;
  for (const auto& [name, weight] : loss_weights_) {
    weights[name] = Node(weight);
  }
  Table out;
  out["lr_scale"] = Node(lr_scale_);
  out["skipped_micro_batches"] = Node(data_->skipped);
  out["frozen"] = Node(to_array(freezer_.frozen()));
  out["loss_weights"] = Node(std::move(weights));
  out["data"] = Node(std::move(changes));
  out["readers"] = Node(world_.share().world);
  if (!phases_.empty()) {
    out["phase"] = phases_.state();
  }
  return Node(std::move(out));
}

void Steering::load(const Node& state, std::int64_t step) {
  lr_scale_ = value<double>(state, "lr_scale");
  data_->skipped = value<std::int64_t>(state, "skipped_micro_batches");
  const std::int64_t readers = optional_value<std::int64_t>(state, "readers").value_or(1);
  KF_CHECK(
      readers == world_.share().world || (data_->skipped == 0 && value<Array>(state, "data").empty()), Code::config,
      "the data of this run were changed on its way (a mixture, a phase, a roll-back) at places that are counted in micro-batches of {} "
      "ranks that read data, and there are {} now; go on with as many as before",
      readers, world_.share().world);
  for (const Node& row : value<Array>(state, "data")) {
    change_data(value<std::int64_t>(row, "micro"), data_change(entry(row, "what")));
  }
  for (const auto& [name, weight] : value<Table>(state, "loss_weights")) {
    set_loss_weight(name, std::get<double>(weight.value));
  }
  std::vector<std::string> frozen;
  for (const Node& name : value<Array>(state, "frozen")) {
    frozen.push_back(std::get<std::string>(name.value));
  }
  freezer_.restore(frozen);
  if (!phases_.empty() && state.table()->find("phase") != nullptr) {
    phases_.load(entry(state, "phase"), step);
    const Phase* const phase = phases_.current();
    in_force_ = phase != nullptr ? phase->data : DataChange();
    freezer_.set_phase(phase != nullptr ? phase->freeze : std::vector<std::string>());
    stepper_.objective().use_loss(phase != nullptr ? phase->loss.get() : nullptr);
  }
}

}  // namespace kf
