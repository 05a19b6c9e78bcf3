#include "checkpoint/files/pieces.h"

#include <utility>

#include "model/expert_stack.h"

namespace kf {

std::optional<TensorPiece> piece_of(const Parameter& weight, const StoredView& view, const Placement& placement) {
  TensorPiece piece{view.name, view.shape(weight.shape), placement.of(weight.shape), weight.kept()};
  Range& range = piece.range;
  if (view.slice >= 0) {
    const std::int64_t own = view.slice - range.begin[0];
    if (own < 0 || own >= range.size[0]) {
      return std::nullopt;
    }
    piece.tensor = piece.tensor.select(0, own);
    range.begin.erase(range.begin.begin());
    range.size.erase(range.size.begin());
  }
  if (view.transposed) {
    const std::size_t last = range.size.size() - 1;
    piece.tensor = piece.tensor.transpose(-1, -2);
    std::swap(range.begin[last], range.begin[last - 1]);
    std::swap(range.size[last], range.size[last - 1]);
  }
  const bool nothing = range.numel() == 0 && !range.covers(piece.shape);
  return nothing ? std::nullopt : std::optional(std::move(piece));
}

std::vector<TensorPiece> pieces_of(Model& model, const Placements& placements) {
  std::vector<TensorPiece> pieces;
  for (const ParameterPtr& parameter : model.parameters()) {
    const Placement placement = placements(*parameter);
    for (const StoredView& view : parameter->stored()) {
      if (std::optional<TensorPiece> piece = piece_of(*parameter, view, placement)) {
        pieces.push_back(std::move(*piece));
      }
    }
  }
  return pieces;
}

namespace {

/// Averages of weights, which lie where these do, whoever updates them (optim/averaging.h).
constexpr const char* kAverages = "average.";

/// Where the optimizer's state of a weight lies.
Range place_of_updates(const Parameter& weight, const Placement& placement) {
  if (weight.gathered == Parameter::Gathered::no) {
    return placement.of(weight.shape);
  }
  if (weight.gathered == Parameter::Gathered::elsewhere) {
    return {Shape(weight.shape.size(), 0), Shape(weight.shape.size(), 0)};
  }
  Placement whole = placement;
  std::erase_if(whole.cuts, [](const Cut& cut) { return cut.axis == Axis::tp; });
  for (Cut& cut : whole.cuts) {  // of what tp has divided, one rank had all rows
    if (cut.axis == Axis::dp_shard && cut.dim == 0) {
      cut.sizes[static_cast<std::size_t>(cut.part)] = Placement{{whole.cuts.begin(), whole.cuts.end() - 1}}.of(weight.shape).size[0];
    }
  }
  return whole.of(weight.shape);
}

}  // namespace

MomentPlaces::MomentPlaces(Model& model, const Placements& placements) {
  for (const ParameterPtr& parameter : model.parameters()) {
    const Placement placement = placements(*parameter);
    const bool experts = is_expert_stack(*parameter);
    weights_[parameter->name] = {parameter->shape, placement.of(parameter->shape), experts};
    updates_[parameter->name] = {parameter->shape, place_of_updates(*parameter, placement), experts};
  }
}

const MomentPlaces::Place* MomentPlaces::find(const std::string& name) const {
  const std::map<std::string, Place>& places = name.starts_with(kAverages) ? weights_ : updates_;
  for (std::size_t dot = name.find('.'); dot != std::string::npos; dot = name.find('.', dot + 1)) {
    if (const auto found = places.find(name.substr(dot + 1)); found != places.end()) {
      return &found->second;
    }
  }
  return nullptr;
}

/// Whether numbers of each expert lie where it does: their rows beside those of the stack.
bool MomentPlaces::Place::divides_experts() const { return experts && range.size[0] > 0 && range.size[0] < shape[0]; }

namespace {

Range rows(const Shape& shape, std::int64_t begin, std::int64_t count) {
  Range out = Range::whole(shape);
  out.begin[0] = begin;
  out.size[0] = count;
  return out;
}

}  // namespace

TensorPiece MomentPlaces::piece(const std::string& name, const at::Tensor& tensor) const {
  const Shape own = tensor.sizes().vec();
  const Place* const place = find(name);
  if (place != nullptr && place->range.size == own) {
    return {name, place->shape, place->range, tensor};
  }
  if (place != nullptr && !own.empty() && place->divides_experts() && own[0] % place->range.size[0] == 0) {
    const std::int64_t each = own[0] / place->range.size[0];
    Shape whole = own;
    whole[0] = each * place->shape[0];
    return {name, whole, rows(whole, each * place->range.begin[0], own[0]), tensor};
  }
  return {name, own, Range::whole(own), tensor};
}

Range MomentPlaces::range(const std::string& name, const Shape& whole) const {
  const Place* const place = find(name);
  if (place != nullptr && place->shape == whole) {
    return place->range;
  }
  if (place != nullptr && !whole.empty() && place->divides_experts() && whole[0] % place->shape[0] == 0) {
    const std::int64_t each = whole[0] / place->shape[0];
    return rows(whole, each * place->range.begin[0], each * place->range.size[0]);
  }
  return Range::whole(whole);
}

bool MomentPlaces::elsewhere(const std::string& name) const {
  const Place* const place = find(name);
  return place != nullptr && place->range.numel() == 0 && !place->range.covers(place->shape);
}

}  // namespace kf
