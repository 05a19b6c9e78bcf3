#include "sweep/draw.h"

namespace kf::sweep {
namespace {

using config::Node;

class Walk {
 public:
  explicit Walk(Suggester& sampler) : sampler_(sampler) {}

  void entries(const std::vector<Entry>& list) {
    for (const Entry& entry : list) {
      if (std::holds_alternative<Computed>(entry.rule)) {
        later_.push_back(&entry);
      } else {
        visit(entry);
      }
    }
  }

  Draw finish() {
    for (const Entry* entry : later_) {
      if (const std::optional<Entry> computed = std::get<Computed>(entry->rule)(out_.values)) {
        visit(*computed);
      }
    }
    return std::move(out_);
  }

 private:
  void visit(const Entry& entry) {
    if (const auto* constant = std::get_if<Node>(&entry.rule)) {
      set(entry, *constant);
    } else if (const auto* distribution = std::get_if<Distribution>(&entry.rule)) {
      set(entry, distribution->value(sample(entry.name, *distribution)));
    } else if (const auto* choice = std::get_if<std::shared_ptr<const Choice>>(&entry.rule)) {
      kept_.push_back(*choice);
      const auto index = static_cast<std::size_t>(sample(entry.name, (*choice)->labels));
      const Option& option = (*choice)->options.at(index);
      if (!option.group) {
        set(entry, option.value);
      } else {
        entries(option.entries);
      }
    }
  }

  double sample(const std::string& name, const Distribution& distribution) {
    const double stored = sampler_.draw(name, distribution);
    out_.parameters.push_back({name, distribution, stored});
    return stored;
  }

  void set(const Entry& entry, Node value) {
    value.origin = value.key_origin = entry.origin;
    out_.values[entry.key] = std::move(value);
  }

  Suggester& sampler_;
  Draw out_;
  std::vector<const Entry*> later_;                  // functions
  std::vector<std::shared_ptr<const Choice>> kept_;  // choices that a function made, while their entries are on the list
};

}  // namespace

Draw draw(const std::vector<Entry>& space, Suggester& sampler) {
  Walk walk(sampler);
  walk.entries(space);
  return walk.finish();
}

}  // namespace kf::sweep
