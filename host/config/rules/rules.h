#pragma once
// What a rule gets and says. Rules are in rules_*.cpp, one small function each; validate.cpp runs them.

#include <cstdint>
#include <initializer_list>
#include <string>
#include <vector>

#include "config/rules/validate.h"
#include "config/tree/node.h"

namespace kf::config {

/// Collects what the rules find, and puts each finding where its keys stand.
class Findings {
 public:
  Findings(const Job& job, Report& report) : job_(job), report_(report) {}

  /// A problem over `keys`, in the order in which the message names them. Left out when one of them has no usable value.
  void problem(const std::vector<std::string>& keys, const std::string& message);
  /// A warning, if all `keys` have usable values.
  void warn(const std::vector<std::string>& keys, const std::string& message);
  /// Whether the user set the key, in any layer, to something else than its default; a preset is not the user.
  bool given(const std::string& key) const;

 private:
  bool usable(const std::vector<std::string>& keys) const;

  const Job& job_;
  Report& report_;
};

/// Far above any model, and few enough for rules that look at every layer; where model.n_layers is more, that is the problem to report.
inline constexpr std::int64_t kMostLayers = std::int64_t{1} << 20;

using Rule = void (*)(const Job&, Findings&);

std::vector<Rule> model_rules();
std::vector<Rule> block_rules();  // part of model_rules
std::vector<Rule> train_rules();
std::vector<Rule> optimizer_rules();
std::vector<Rule> batch_rules();
std::vector<Rule> source_rules();  // what a run learns from
std::vector<Rule> data_rules();    // how it is read
std::vector<Rule> eval_rules();
std::vector<Rule> phase_rules();
std::vector<Rule> parallel_rules();
std::vector<Rule> context_rules();  // distributed.cp
std::vector<Rule> diloco_rules();
std::vector<Rule> save_rules();

}  // namespace kf::config
