#include "checkpoint/own_pieces.h"

#include <algorithm>
#include <map>
#include <type_traits>

#include "config/tree/json.h"
#include "optim/diloco.h"

namespace kf {
namespace {

using config::Node;
using config::Table;

/// The weight that an optimizer's tensor SLOT.WEIGHT is of; null where it is of none.
const Parameter* weight_of(const std::string& name, const std::map<std::string, const Parameter*>& weights) {
  for (std::size_t dot = name.find('.'); dot != std::string::npos; dot = name.find('.', dot + 1)) {
    if (const auto found = weights.find(name.substr(dot + 1)); found != weights.end()) {
      return found->second;
    }
  }
  return nullptr;
}

/// Whether this rank is the first one of a replica that has a part of the weight.
bool is_first(const Parameter& weight) {
  if (weight.gathered != Parameter::Gathered::no) {
    return weight.gathered == Parameter::Gathered::here;  // nobody else has any state of it
  }
  return weight.first && std::all_of(weight.placement.cuts.begin(), weight.placement.cuts.end(), [](const Cut& cut) {
           const auto first = std::find_if(cut.sizes.begin(), cut.sizes.end(), [](std::int64_t rows) { return rows > 0; });
           return first - cut.sizes.begin() == cut.part;
         });
}

/// Takes the place of replicas' silence: what is a worker's own gets its name, what is all workers' is the first one's. Says whether the
/// ranks are workers.
bool name_own(Snapshot& snapshot, std::int64_t worker) {
  const auto of_all = [](const TensorPiece& piece) { return is_of_all_workers(piece.name); };
  if (std::none_of(snapshot.moments.begin(), snapshot.moments.end(), of_all)) {
    return false;
  }
  const auto rename = [&](auto& numbers) {
    std::remove_reference_t<decltype(numbers)> own;
    for (const auto& [name, number] : numbers) {
      own[worker_name(name, worker)] = number;
    }
    numbers = std::move(own);
  };
  if (worker > 0) {
    std::erase_if(snapshot.moments, of_all);
    for (TensorPiece& piece : snapshot.moments) {
      piece.name = worker_name(piece.name, worker);
    }
    rename(snapshot.optimizer_integers);
    rename(snapshot.optimizer_reals);
  }
  return true;
}

bool covers(const TensorPiece& piece) { return piece.range.covers(piece.shape); }

void add_numbers_of_all(Snapshot& snapshot, Group& all) {
  Table integers, reals;
  for (const auto& [name, number] : snapshot.optimizer_integers) {
    integers[name] = Node(number);
  }
  for (const auto& [name, number] : snapshot.optimizer_reals) {
    reals[name] = Node(number);
  }
  Table mine;
  mine["integers"] = Node(std::move(integers));
  mine["reals"] = Node(std::move(reals));
  for (const std::string& text : all.tell(config::to_json(Node(std::move(mine)), config::JsonStyle::exact))) {
    const Node told = config::parse_json(text, "the optimizer's numbers of a rank", config::JsonStyle::exact);
    for (const auto& [name, number] : *told.table()->find("integers")->table()) {
      snapshot.optimizer_integers.emplace(name, std::get<std::int64_t>(number.value));
    }
    for (const auto& [name, number] : *told.table()->find("reals")->table()) {
      snapshot.optimizer_reals.emplace(name, std::get<double>(number.value));
    }
  }
}

}  // namespace

void keep_own_pieces(Snapshot& snapshot, Model& model, const World& world) {
  if (world.size() == 1) {
    return;
  }
  const std::int64_t worker = world.along(Axis::dp_replicate).rank();
  const bool replica = worker > 0, apart = name_own(snapshot, worker);
  std::map<std::string, const Parameter*> weights, stored;
  for (const ParameterPtr& weight : model.parameters()) {
    weights[weight->name] = weight.get();
    for (const StoredView& view : weight->stored()) {
      stored[view.name] = weight.get();
    }
  }
  std::erase_if(snapshot.weights, [&](const TensorPiece& piece) { return replica || !stored.at(piece.name)->first; });
  std::erase_if(snapshot.moments, [&](const TensorPiece& piece) {
    const Parameter* const weight = weight_of(piece.name, weights);
    const bool part = weight != nullptr && !weight->placement.whole() && !covers(piece);
    const bool mine = part                ? weight->first
                      : weight != nullptr ? is_first(*weight)
                                          : world.stage().rank() == 0 && world.along(Axis::pp).rank() == 0;
    return (replica && !apart) || !mine;
  });
  add_numbers_of_all(snapshot, world.files());
}

}  // namespace kf
