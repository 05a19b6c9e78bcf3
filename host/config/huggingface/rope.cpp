// The rotary settings of config.json in both spellings.

#include <algorithm>
#include <cmath>

#include "config/huggingface/common.h"
#include "core/text.h"

namespace kf::config::huggingface {
namespace {

/// One table of rope_parameters; its problems and keys go to the reader.
class RopeTable {
 public:
  RopeTable(Reader& c, Table values, std::int64_t trained)
      : c_(c), values_(std::move(values)), inner_(values_), trained_(trained), longest_(c.integer("max_position_embeddings", 2048)) {}

  std::string type() {
    const std::string old = inner_.text("type", "default");
    const std::string type = inner_.text("rope_type", old);
    return type == "deepseek_yarn" ? "yarn" : type;
  }
  /// Queries grow with their positions, counted in original_max_position_embeddings.
  void beta() {
    if (const std::optional<double> beta = inner_.maybe_real("llama_4_scaling_beta"); beta && *beta != 0) {
      c_.set("attn_temp_tuning", true);
      c_.set("attn_temp_layers", std::string("all"));
      c_.set("attn_temp_scale", *beta);
      c_.set("attn_temp_floor", inner_.integer("original_max_position_embeddings", trained_));
    } else if (!beta) {
      c_.problem("rope_parameters.llama_4_scaling_beta is missing");
    }
    inner_.ignore({"max_position_embeddings"});  // not read by the class
  }
  double theta(double fallback) { return inner_.real("rope_theta", fallback); }
  double fraction(double fallback) { return inner_.real("partial_rotary_factor", fallback); }

  /// Writes rope_scaling and its keys.
  void stretch(const std::string& type, bool squared_mscale) {
    if (type == "default") {
      inner_.ignore({"original_max_position_embeddings"});  // transformers reads it for stretches only
      return;
    }
    if (type == "longrope" || type == "su") {  // its older name
      longrope();
      return;
    }
    if (type != "linear" && type != "dynamic" && type != "llama3" && type != "yarn") {
      c_.problem(format("rope_type = '{}' is not understood; default, linear, dynamic, llama3, yarn and longrope are", type));
      return;
    }
    c_.set("rope_scaling", type);
    const bool by_ratio = type == "yarn" && inner_.given("factor") && !inner_.has("factor");  // null
    const double factor = by_ratio ? inner_.real("factor", ratio_to(positions_before())) : inner_.real("factor");
    c_.set("rope_factor", factor);
    if (type == "linear") {
      return;
    }
    if (type == "dynamic") {  // max_position_embeddings are those before the stretch
      c_.set("rope_orig_len", longest_);
      c_.set("max_seq_len", static_cast<std::int64_t>(static_cast<double>(longest_) * factor));
      inner_.ignore({"original_max_position_embeddings"});
      return;
    }
    c_.set("rope_orig_len", positions_before());
    if (type == "llama3") {
      c_.set("rope_low_freq", inner_.real("low_freq_factor"));
      c_.set("rope_high_freq", inner_.real("high_freq_factor"));
    } else {
      yarn(factor, squared_mscale);
    }
  }

  /// Problems of this table, under its name.
  void finish(const std::string& name) {
    for (const std::string& problem : inner_.problems()) {
      c_.problem(name + "." + problem);
    }
    for (const std::string& note : inner_.notes()) {
      c_.note(name + "." + note);
    }
  }

 private:
  static double temperature(double factor, double mscale) { return factor <= 1 ? 1 : 0.1 * mscale * std::log(factor) + 1; }

  Array factors(const char* key) {
    const Array* const list = inner_.list(key);
    Array out;
    for (const Node& node : list ? *list : Array()) {
      const auto* const whole = std::get_if<std::int64_t>(&node.value);
      out.push_back(whole ? Node(static_cast<double>(*whole)) : node);
    }
    if (out.empty()) {
      c_.problem(format("{} is missing", key));
    }
    return out;
  }

  void longrope() {
    const std::int64_t before = positions_before();
    const double factor = inner_.real("factor", ratio_to(before));
    c_.set("rope_scaling", std::string("longrope"));
    c_.set("rope_orig_len", before);
    c_.set("rope_factor", std::max(factor, 1.0));
    c_.set("rope_short_factors", factors("short_factor"));
    c_.set("rope_long_factors", factors("long_factor"));
    const double own = factor <= 1 ? 1 : std::sqrt(1 + std::log(factor) / std::log(static_cast<double>(before)));
    if (const std::optional<double> given = gain(); given && std::abs(*given - own) > 1e-6) {
      c_.set("rope_gain", *given);
    }
  }

  /// attention_factor replaces 0.1 ln(factor) + 1; mscale / mscale_all_dim is a ratio; DeepSeek squares mscale_all_dim into the scores.
  void yarn(double factor, bool squared_mscale) {
    const auto borders = [&](const char* key, double usual) {
      const double value = inner_.real(key, usual);
      return value == 0 ? usual : value;  // as the classes have it
    };
    c_.set("rope_beta_fast", borders("beta_fast", 32));
    c_.set("rope_beta_slow", borders("beta_slow", 1));
    c_.set("rope_truncate", inner_.flag("truncate", true));
    const std::optional<double> given = gain();
    const double mscale = inner_.real("mscale", 0);
    const double all = inner_.real("mscale_all_dim", 0);
    const bool ratio = !given && mscale != 0 && all != 0;
    const bool on_scores = squared_mscale && all != 0;
    if (on_scores) {
      c_.set("rope_attn_factor", std::string("softmax"));
      c_.set("rope_mscale", all);
    }
    if (given || ratio) {
      set_gain(given ? *given : temperature(factor, mscale) / temperature(factor, all), on_scores ? 1 : temperature(factor, 1));
    } else if (on_scores) {  // the class keeps the plain temperature on queries and keys, too
      set_gain(temperature(factor, 1), 1);
    }
  }

  /// `usual` is what the settings have without a gain.
  void set_gain(double gain, double usual) {
    if (!(gain > 0)) {
      c_.problem(format("a factor of {} on queries and keys is not understood; it must be positive", gain));
    } else if (std::abs(gain - usual) > 1e-12) {
      c_.set("rope_gain", gain);
    }
  }

  std::optional<double> gain() {
    const std::optional<double> given = inner_.maybe_real("attention_factor");
    if (given && !(*given > 0)) {
      c_.problem(format("attention_factor = {} is not understood; it must be positive", *given));
      return std::nullopt;
    }
    return given;
  }

  /// The top level wins over the table, as in transformers.
  std::int64_t positions_before() {
    const std::int64_t inner = inner_.integer("original_max_position_embeddings", trained_);
    return c_.has("original_max_position_embeddings") ? trained_ : inner;
  }
  double ratio_to(std::int64_t before) const { return before > 0 ? static_cast<double>(longest_) / static_cast<double>(before) : 1; }

  Reader& c_;
  Table values_;
  Reader inner_;
  std::int64_t trained_;  // positions before a stretch, where the table does not say
  std::int64_t longest_;
};

/// Positions before a stretch as the top level says them.
std::int64_t trained_positions(Reader& c) {
  const std::int64_t all = c.integer("max_position_embeddings", 2048);
  return c.integer("original_max_position_embeddings", all);
}

bool nested(const Table& parameters) {
  return std::any_of(parameters.begin(), parameters.end(), [](const auto& entry) { return entry.second.table() != nullptr; });
}

void set_fraction(Reader& c, double fraction) {
  if (fraction != 1) {
    c.set("rope_fraction", fraction);
  }
}

/// rope_scaling and rope_parameters are one thing under two names; either may hold what the other spells at the top.
Table parameters_of(Reader& c) {
  const Table* scaling = c.table("rope_scaling");
  const Table* parameters = c.table("rope_parameters");
  if (scaling && parameters) {
    c.problem("rope_scaling and rope_parameters are both given");
  }
  return scaling ? *scaling : parameters ? *parameters : Table();
}

}  // namespace

void take_rope(Reader& c, const RopeFamily& family) {
  if (family.stretched && !c.has("rope_scaling") && !c.has("rope_parameters")) {
    c.problem("rope_parameters is missing: the class stretches by itself then");
  }
  const Table parameters = parameters_of(c);
  const double theta = c.real("rope_theta", family.theta);
  const double fraction = c.real("partial_rotary_factor", family.fraction);
  if (nested(parameters)) {
    c.problem("rope_parameters by layer type are not understood for this model_type");
    return;
  }
  RopeTable table(c, parameters, trained_positions(c));
  c.set("rope_theta", table.theta(theta));
  const double rotated = table.fraction(fraction);
  if (rotated != 1 && family.fraction == 1 && !family.partial) {
    c.problem(format("partial_rotary_factor = {} is not understood: the class rotates whole heads", rotated));
  }
  set_fraction(c, rotated);
  table.stretch(table.type(), family.squared_mscale);
  if (family.llama4_beta) {
    table.beta();
  }
  table.finish("rope_parameters");
}

void take_proportional_ropes(Reader& c) {
  const Table parameters = parameters_of(c);
  const std::int64_t trained = trained_positions(c);
  for (const auto& [name, value] : parameters) {
    if ((name != "full_attention" && name != "sliding_attention") || value.table() == nullptr) {
      c.problem(format("rope_parameters.{} is not understood", name));
    }
  }
  const auto part = [&](const char* name, const Table& usual) {
    const Node* const node = parameters.find(name);
    return node != nullptr && node->table() != nullptr ? *node->table() : parameters.empty() ? usual : Table();
  };
  Table far;
  far["rope_type"] = Node(std::string("proportional"));
  far["partial_rotary_factor"] = Node(0.25);
  RopeTable global(c, part("full_attention", far), trained);
  c.set("rope_theta", global.theta(1000000));
  const double share = global.fraction(1);
  if (const std::string type = global.type(); type == "proportional") {
    set_fraction(c, share);
    c.set("rope_partial", std::string("proportional"));
    c.set("rope_fraction_local", 1.0);
  } else {
    global.stretch(type, false);
  }
  global.finish("rope_parameters.full_attention");
  RopeTable near(c, part("sliding_attention", {}), trained);
  c.set("rope_theta_local", near.theta(10000));
  near.fraction(1);  // the class does not read it for this type
  if (near.type() != "default") {
    c.problem("rope_parameters.sliding_attention stretches its frequencies, which is not understood");
  }
  near.finish("rope_parameters.sliding_attention");
}

void take_two_ropes(Reader& c, double theta, double local) {
  const Table parameters = parameters_of(c);
  const double global_theta = c.real("rope_theta", theta);
  const double local_theta = c.real("rope_local_base_freq", local == 0 ? global_theta : local);
  const std::int64_t trained = trained_positions(c);
  const bool by_type = nested(parameters);
  const auto part = [&](const char* name) {
    const Node* node = parameters.find(name);
    return node && node->table() ? *node->table() : Table();
  };
  for (const auto& [name, value] : parameters) {
    if (by_type && name != "full_attention" && name != "sliding_attention") {
      c.problem(format("rope_parameters.{} is not understood", name));
    }
  }
  RopeTable global(c, by_type ? part("full_attention") : parameters, trained);
  c.set("rope_theta", global.theta(global_theta));
  global.stretch(global.type(), false);
  global.finish(by_type ? "rope_parameters.full_attention" : "rope_parameters");
  RopeTable near(c, by_type ? part("sliding_attention") : Table(), trained);
  if (c.model().find("layer_pattern")) {
    c.set("rope_theta_local", near.theta(local_theta));
  } else {
    near.theta(local_theta);
  }
  if (near.type() != "default") {
    c.problem("rope_parameters.sliding_attention stretches its frequencies, which is not understood");
  }
  near.finish("rope_parameters.sliding_attention");
}

}  // namespace kf::config::huggingface
