#include "run/load_settings.h"

#include <algorithm>
#include <iterator>

#include "checkpoint/files/head_source.h"
#include "config/plan/load_parts.h"

namespace kf {
namespace {

bool excludes(const config::CheckpointConfig& checkpoint, const char* part) {
  const config::Strings& all = checkpoint.exclude_from_loading;
  return std::find(all.begin(), all.end(), part) != all.end();
}

LayerRule layer_rule(const std::string& name) {
  if (name == "fresh") {
    return LayerRule::fresh;
  }
  if (name == "copy_last") {
    return LayerRule::copy_last;
  }
  return name == "interleave" ? LayerRule::interleave : LayerRule::exact;
}

}  // namespace

LoadFrom loads_from(const config::Config& config, const Start& start) {
  if (start.resumes()) {
    return start.nothing_saved ? LoadFrom::load_path : LoadFrom::own;
  }
  return config.checkpoint.init_from ? LoadFrom::init_from : LoadFrom::nowhere;
}

VocabRows vocab_rows(const config::Config& config) {
  const std::string& how = config.checkpoint.init_vocab;
  const VocabRows::Fill fill = how == "mean" ? VocabRows::Fill::mean : how == "init" ? VocabRows::Fill::init : VocabRows::Fill::none;
  return {fill, config.model.vocab_size, head_source(config.checkpoint.init_head)};
}

LoadRules load_rules(const config::CheckpointConfig& checkpoint, LoadFrom from) {
  LoadRules out;
  if (from != LoadFrom::init_from && from != LoadFrom::load_path) {
    return out;
  }
  out.strict = checkpoint.strict;
  for (const std::string& text : checkpoint.exclude_from_loading) {
    if (!config::is_load_part(text)) {
      out.exclude.push_back(text);
    } else if (text == "model") {
      out.exclude.push_back("*");
    }
  }
  std::vector<std::pair<std::string, std::string>> names;
  for (const config::NameRule& rule : checkpoint.name_map) {
    names.emplace_back(rule.from, rule.to);
  }
  out.names = NameMap(names, "checkpoint.name_map");
  if (from == LoadFrom::init_from) {
    out.layers = layer_rule(checkpoint.init_layers);
  }
  return out;
}

LeftParts left_parts(const config::CheckpointConfig& checkpoint, const Start& start, LoadFrom from) {
  LeftParts out;
  const std::vector<Difference>& changed = start.resume.changed;
  out.state.other_optimizer = std::any_of(changed.begin(), changed.end(), [](const Difference& d) { return d.key == "optimizer.name"; });
  if (from == LoadFrom::load_path) {
    out.state.optimizer = !excludes(checkpoint, "optimizer");
    out.state.moments = !excludes(checkpoint, "optimizer.moments");
    out.state.rng = !excludes(checkpoint, "rng");
    out.data = excludes(checkpoint, "data");
  }
  return out;
}

}  // namespace kf
