#include "sweep/proposer.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "config/tree/json.h"
#include "core/error.h"
#include "sweep/grid.h"
#include "sweep/tpe.h"

namespace kf::sweep {
namespace {

using config::Node;
using config::Table;

bool accepted(const Definition& definition, Draw& draw) { return !definition.adjust || definition.adjust(draw.values); }

class Sampled final : public Proposer {
 public:
  explicit Sampled(const Definition& definition) : definition_(definition) {}

  std::optional<Draw> next(const std::vector<Trial>& trials, std::int64_t number) override {
    for (std::int64_t attempt = 0; attempt < kMaxRejected; ++attempt) {
      Random random(definition_.seed, static_cast<std::uint64_t>(number), static_cast<std::uint64_t>(attempt));
      Draw draw = definition_.method == Method::tpe ? tpe(trials, std::move(random)) : even(std::move(random));
      if (accepted(definition_, draw)) {
        return draw;
      }
    }
    fail(Code::config, "{}: adjust rejected {} draws one after the other; widen the space, or let it accept more",
         config::to_text(definition_.place), kMaxRejected);
  }

 private:
  Draw tpe(const std::vector<Trial>& trials, Random random) const {
    TpeSuggester sampler(trials, definition_.maximise, std::move(random));
    return draw(definition_.space, sampler);
  }
  Draw even(Random random) const {
    RandomSuggester sampler(std::move(random));
    return draw(definition_.space, sampler);
  }

  const Definition& definition_;
};

/// The points of a grid or list that adjust accepts.
class Listed final : public Proposer {
 public:
  Listed(const Definition& definition, std::vector<Draw> draws) {
    for (Draw& draw : draws) {
      if (accepted(definition, draw)) {
        draws_.push_back(std::move(draw));
      }
    }
    KF_CHECK(!draws_.empty(), Code::config, "{}: adjust rejected every point", config::to_text(definition.place));
  }

  std::optional<std::int64_t> count() const override { return static_cast<std::int64_t>(draws_.size()); }
  std::optional<Draw> next(const std::vector<Trial>& /*trials*/, std::int64_t number) override {
    return number < *count() ? std::optional(draws_[static_cast<std::size_t>(number)]) : std::nullopt;
  }

 private:
  std::vector<Draw> draws_;
};

std::optional<double> number_of(const Node& node) {
  if (const auto* integer = std::get_if<std::int64_t>(&node.value)) {
    return static_cast<double>(*integer);
  }
  const auto* real = std::get_if<double>(&node.value);
  return real != nullptr ? std::optional(*real) : std::nullopt;
}

/// How the store shows values that follow no distribution: numbers between the least and the largest, else a choice.
Distribution distribution_of(const std::vector<Node>& values) {
  double low = INFINITY;
  double high = -INFINITY;
  bool integers = true;
  for (const Node& node : values) {
    const std::optional<double> number = number_of(node);
    if (!number || !std::isfinite(*number)) {
      std::vector<Node> choices;
      for (const Node& value : values) {
        if (std::find(choices.begin(), choices.end(), value) == choices.end()) {
          choices.push_back(value);
        }
      }
      return Distribution::choice(std::move(choices));
    }
    low = std::min(low, *number);
    high = std::max(high, *number);
    integers = integers && std::holds_alternative<std::int64_t>(node.value);
  }
  return integers ? Distribution::integer(static_cast<std::int64_t>(low), static_cast<std::int64_t>(high)) : Distribution::real(low, high);
}

/// Optuna's choices are scalars: a list is there as its text.
Node scalar(const Node& node) { return node.array() || node.table() ? Node(config::to_json(node)) : Node(node.value); }

double stored_of(const Distribution& distribution, const Node& value) {
  if (distribution.numeric()) {
    return *number_of(value);
  }
  const auto found = std::find(distribution.choices.begin(), distribution.choices.end(), value);
  return static_cast<double>(found - distribution.choices.begin());
}

/// Rows of values with parameters that the store can keep.
std::vector<Draw> with_parameters(const std::vector<Table>& rows) {
  std::map<std::string, std::vector<Node>> columns;
  for (const Table& row : rows) {
    for (const auto& [key, node] : row) {
      columns[key].push_back(scalar(node));
    }
  }
  std::vector<Draw> out;
  for (const Table& row : rows) {
    Draw draw;
    draw.values = row;
    for (const auto& [key, node] : row) {
      const Distribution distribution = distribution_of(columns.at(key));
      draw.parameters.push_back({key, distribution, stored_of(distribution, scalar(node))});
    }
    out.push_back(std::move(draw));
  }
  return out;
}

/// The script's own method.
class Suggested final : public Proposer {
 public:
  explicit Suggested(const Definition& definition) : definition_(definition) {}

  std::optional<Draw> next(const std::vector<Trial>& trials, std::int64_t number) override {
    std::optional<Table> values = definition_.suggest(number, trials);
    if (!values) {
      return std::nullopt;
    }
    Draw draw = with_parameters({*values}).front();
    KF_CHECK(accepted(definition_, draw), Code::config, "{}: adjust rejected what the method gave for trial {}",
             config::to_text(definition_.place), number);
    return draw;
  }

 private:
  const Definition& definition_;
};

}  // namespace

std::unique_ptr<Proposer> make_proposer(const Definition& definition) {
  switch (definition.method) {
    case Method::grid: return std::make_unique<Listed>(definition, grid_points(definition.space));
    case Method::list: return std::make_unique<Listed>(definition, with_parameters(definition.list));
    case Method::function: return std::make_unique<Suggested>(definition);
    default: return std::make_unique<Sampled>(definition);
  }
}

}  // namespace kf::sweep
