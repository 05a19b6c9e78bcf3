#include "config/export/config_json.h"

#include <algorithm>
#include <optional>
#include <tuple>

#include "config/export/class_names.h"
#include "config/export/comparable.h"
#include "config/export/spellings.h"
#include "config/huggingface/families.h"
#include "config/huggingface/huggingface.h"
#include "config/rules/validate.h"
#include "config/schema/schema.h"
#include "config/tree/json.h"
#include "core/error.h"
#include "core/text.h"

namespace kf::config {
namespace {

std::string type_of(const Table& json) {
  const Node* const type = json.find("model_type");
  const auto* const text = type != nullptr ? std::get_if<std::string>(&type->value) : nullptr;
  return text != nullptr ? *text : "";
}

/// What a file says of a model.
struct Reading {
  Table model;  // as it was read
  std::vector<std::string> problems;
  std::vector<std::string> read_problems;  // of the reading alone
  std::vector<Difference> wrong;           // settings that change numbers
  std::vector<Difference> lost;            // settings of training

  std::pair<std::size_t, std::size_t> score() const { return {problems.size() + wrong.size(), lost.size()}; }
};

bool in_bounds(const Row& row, const Node& value) {
  if (const auto* const number = std::get_if<std::int64_t>(&value.value)) {
    return row.check.holds(static_cast<double>(*number));
  }
  const auto* const real = std::get_if<double>(&value.value);
  return real == nullptr || row.check.holds(*real);
}

/// What a job with this model would be refused for.
std::vector<std::string> faults_as_job(const Table& model) {
  std::vector<std::string> out;
  Config config;
  for (const auto& [key, value] : model) {
    const Row& row = *find_row("model." + key);
    row.set(config, value);
    if (!in_bounds(row, value)) {
      out.push_back(format("{} ({}) {}", row.key(), brief(value), row.check.words()));
    }
  }
  config.train.seq_len = std::min(config.train.seq_len, config.model.max_seq_len);
  Table merged;
  merged["model"] = Node(model);
  Report report;
  validate({config, merged, {}, std::nullopt, false}, report);
  for (const Problem& problem : report.problems) {
    out.push_back(problem.message);
  }
  return out;
}

/// Reads files and compares them with the model that they are to stand for.
class Judge {
 public:
  explicit Judge(const ModelConfig& model) : ours_(comparable(model)), training_(kf::config::of_training(model)) {}

  /// What the file says; not compared yet.
  static Reading read(const Table& json) {
    Reading out;
    out.model = model_of_config_json(Node(json), "config.json", out.problems);
    return out;
  }

  void compare(Reading& reading) const {
    Config config;
    for (const auto& [key, value] : reading.model) {
      const Row* const row = find_row("model." + key);
      KF_CHECK(row != nullptr, Code::other, "model.{} of a config.json is no setting", key);
      row->set(config, value);
    }
    const ModelConfig& m = config.model;
    if (m.n_heads < 1 || m.n_layers < 0 || m.n_layers > kMostLayers || m.moe_frequency < 1) {
      reading.problems.emplace_back("the file makes no model");
      return;
    }
    reading.wrong = differences(ours_, comparable(m));
    reading.lost = differences(training_, kf::config::of_training(m));
  }

  Reading judge(const Table& json) const {
    Reading out = read(json);
    out.read_problems = out.problems;
    compare(out);
    return out;
  }

 private:
  static constexpr std::int64_t kMostLayers = 100'000;
  Settings ours_, training_;
};

/// Takes out keys that came with others and that the family does not know.
bool drop_what_is_not_read(Table& json, Reading& best, const Judge& judge) {
  std::vector<std::string> keys;
  for (const auto& [key, value] : json) {
    keys.push_back(key);
  }
  bool dropped = false;
  for (const std::string& key : keys) {
    if (best.problems.empty() || key == "model_type") {
      continue;
    }
    Table without = json;
    without.erase(key);
    if (Reading reading = judge.judge(without); reading.score() < best.score()) {
      best = std::move(reading);
      json = std::move(without);
      dropped = true;
    }
  }
  return dropped;
}

/// `json`, changed by whatever spelling brings it nearer, until none does. Spellings that the family does not read are left out after the
/// first look.
Table nearer(Table json, const std::vector<Spelling>& proposals, const Judge& judge) {
  Reading best = judge.judge(json);
  std::vector<const Spelling*> left;
  for (const Spelling& proposal : proposals) {
    left.push_back(&proposal);
  }
  for (bool moved = true; moved && best.score() != Reading().score();) {
    moved = false;
    std::vector<const Spelling*> read;
    for (const Spelling* const proposal : left) {
      Table changed = with(json, *proposal);
      if (changed == json) {
        read.push_back(proposal);
        continue;
      }
      Reading reading = Judge::read(changed);
      if (reading.model == best.model && reading.problems == best.read_problems) {
        continue;
      }
      read.push_back(proposal);
      reading.read_problems = reading.problems;
      judge.compare(reading);
      if (reading.score() < best.score()) {
        best = std::move(reading);
        json = std::move(changed);
        moved = true;
      }
    }
    left = std::move(read);
    moved = drop_what_is_not_read(json, best, judge) || moved;
  }
  return json;
}

/// Another value of the same type.
std::optional<Node> other(const Node& node) {
  if (const auto* const value = std::get_if<std::int64_t>(&node.value)) {
    return Node(*value + 1);
  }
  if (const auto* const value = std::get_if<double>(&node.value)) {
    return Node(2 * *value + 1);
  }
  if (const auto* const value = std::get_if<bool>(&node.value)) {
    return Node(!*value);
  }
  if (const auto* const value = std::get_if<std::string>(&node.value)) {
    return Node(*value + "x");
  }
  return std::nullopt;
}

/// Rotary settings as transformers 5 spells them, where the family reads that.
Table with_rope_parameters(Table json, const std::vector<Spelling>& proposals, const Judge& judge) {
  const auto best = judge.judge(json).score();
  for (const Spelling& proposal : proposals) {
    if (json.find("rope_parameters") == nullptr && proposal.front().first == "rope_parameters") {
      Table said = with(json, proposal);
      const bool by_kind = std::get<Table>(proposal.front().second->value).find("full_attention") != nullptr;
      const Reading now = judge.judge(said), another = Judge::read(with(said, {{"rope_parameters.rope_theta", Node(1.5)}}));
      if (now.score() == best && (by_kind || another.model != now.model)) {
        return said;
      }
    }
  }
  return json;
}

/// What classes take by default is said, too, where they read it: programs with other defaults read the same.
Table said_in_full(Table json, const std::vector<Spelling>& proposals, const Judge& judge) {
  const auto best = judge.judge(json).score();
  for (const Spelling& proposal : proposals) {
    const auto& [key, value] = proposal.front();
    const std::optional<Node> changed = proposal.size() == 1 && value ? other(*value) : std::nullopt;
    const bool spelled = key == "rope_theta" && json.find("rope_parameters") != nullptr;
    if (!changed || spelled || key.starts_with("rope_parameters.") || find_node(json, key) != nullptr) {
      continue;
    }
    Table said = with(json, proposal);
    const Reading now = Judge::read(said), another = Judge::read(with(json, {{key, changed}}));
    const bool word = std::holds_alternative<std::string>(value->value);
    const bool is_read = another.model != now.model || (word && another.problems != now.problems);
    if (is_read && judge.judge(said).score() == best) {
      json = std::move(said);
    }
  }
  return json;
}

/// A file from elsewhere names the program that wrote it and code beside it.
Table without_origin(Table json) {
  for (const char* key : {"_name_or_path", "auto_map", "transformers_version"}) {
    json.erase(key);
  }
  return json;
}

std::string list_of(const Reading& reading, const std::string& family) {
  std::string out;
  for (const Difference& one : reading.wrong) {
    out += format("\n  {} is {}; {} has {}", one.key, brief(one.ours), family, brief(one.theirs));
  }
  for (const std::string& problem : reading.problems) {
    out += "\n  " + problem;
  }
  return out;
}

/// What was tried last and what is nearest.
struct Search {
  const Judge& judge;
  std::optional<std::pair<std::string, Reading>> nearest = {};

  /// Nothing where the family does not have the settings, or what it says of them makes no job. Of a `fresh` file, all is said.
  std::optional<Table> attempt(const Table& from, const std::string& family, const std::vector<Spelling>& proposals, bool fresh) {
    Table json = nearer(from, proposals, judge);
    Reading reading = judge.judge(json);
    if (reading.problems.empty() && reading.wrong.empty()) {
      json = fresh ? said_in_full(with_rope_parameters(std::move(json), proposals, judge), proposals, judge) : std::move(json);
      reading = judge.judge(json);
      reading.problems = faults_as_job(reading.model);
    }
    if (reading.problems.empty() && reading.wrong.empty()) {
      return json;
    }
    if (!nearest || reading.score() < nearest->second.score()) {
      nearest = {family, std::move(reading)};
    }
    return std::nullopt;
  }
};

ConfigJson finished(Table json, const Judge& judge, bool of_source, bool keep_class) {
  ConfigJson out;
  out.family = type_of(json);
  const std::string kind = class_of_family(out.family);
  if (!keep_class && !kind.empty()) {
    json["architectures"] = Node(Array{Node(kind)});
  }
  if (!of_source) {  // what classes take by default may be no id of this vocabulary, or one that means something else
    for (const char* key : {"bos_token_id", "eos_token_id", "pad_token_id"}) {
      json[key];
    }
  }
  for (const Difference& one : judge.judge(json).lost) {
    out.lost.push_back(one.key);
  }
  out.json = std::move(json);
  out.of_source = of_source;
  return out;
}

bool names_a_language_model(const Table& json) {
  const Node* const classes = json.find("architectures");
  const Array* const list = classes != nullptr ? classes->array() : nullptr;
  const auto* const name = list != nullptr && !list->empty() ? std::get_if<std::string>(&list->front().value) : nullptr;
  return name != nullptr && (name->ends_with("ForCausalLM") || name->ends_with("LMHeadModel"));
}

Table bare(const std::string& family) {
  Table json;
  json["model_type"] = Node(family);
  return json;
}

/// The source's, then what most models are, then all others by how near they are as they stand.
std::vector<std::string> families_to_try(const std::string& asked, const Table* source, const Judge& judge) {
  constexpr std::size_t better_known = 3;  // settings that a family of few may be nearer by
  if (!asked.empty()) {
    const std::vector<std::string> names = huggingface::family_names();
    const std::string near = nearest(asked, names);
    KF_CHECK(std::find(names.begin(), names.end(), asked) != names.end(), Code::config, "there is no family '{}'{}; have: {}", asked,
             near.empty() ? "" : "; did you mean '" + near + "'?", join(names, ", "));
    return {asked};
  }
  const FamiliesByUse all = families_by_use();
  std::vector<std::string> out = source != nullptr ? std::vector{type_of(*source)} : std::vector<std::string>();
  out.insert(out.end(), all.first.begin(), all.first.end());
  std::vector<std::pair<std::size_t, std::string>> order;
  for (const std::string& name : all.common) {
    order.emplace_back(judge.judge(bare(name)).score().first, name);
  }
  for (const std::string& name : all.others) {
    order.emplace_back(judge.judge(bare(name)).score().first + better_known, name);
  }
  std::stable_sort(order.begin(), order.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
  for (const auto& [score, name] : order) {
    out.push_back(name);
  }
  return out;
}

/// GPT-2 without biases, which nanoGPT makes and the class does not know.
std::optional<ConfigJson> gpt2_with_zero_biases(ModelConfig model, const std::string& family) {
  const bool has_bias = model.norm_bias || model.mlp_bias || model.attn_bias != "none";
  if (has_bias || (!family.empty() && family != "gpt2")) {
    return std::nullopt;
  }
  model.norm_bias = model.mlp_bias = true;
  model.attn_bias = "all";
  const Judge judge(model);
  const std::vector<Spelling> proposals = spellings(model);
  std::optional<Table> json = Search{judge}.attempt(bare("gpt2"), "gpt2", proposals, true);
  if (!json) {
    return std::nullopt;
  }
  ConfigJson out = finished(std::move(*json), judge, false, false);
  out.zero_biases = true;
  return out;
}

void sort(Table& table) {
  std::sort(table.begin(), table.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
  for (auto& [key, value] : table) {
    if (value.table() != nullptr) {
      sort(*value.table());
    }
  }
}

}  // namespace

ConfigJson config_json_of(const ModelConfig& model, const Table* source, const std::string& family) {
  const Judge judge(model);
  const std::vector<Spelling> proposals = spellings(model);
  Search search{judge};
  std::vector<Spelling> small_first = proposals;  // the source's own spelling stays where it can
  std::stable_partition(small_first.begin(), small_first.end(), [](const Spelling& one) { return one.size() == 1; });
  if (source != nullptr && (family.empty() || family == type_of(*source))) {
    if (std::optional<Table> json = search.attempt(without_origin(*source), type_of(*source), small_first, false)) {
      return finished(std::move(*json), judge, true, names_a_language_model(*source));
    }
  }
  for (const std::string& name : families_to_try(family, source, judge)) {
    if (std::optional<Table> json = search.attempt(bare(name), name, proposals, true)) {
      return finished(std::move(*json), judge, false, false);
    }
  }
  if (std::optional<ConfigJson> out = gpt2_with_zero_biases(model, family)) {
    return std::move(*out);
  }
  const auto& [near, reading] = *search.nearest;
  fail(Code::config, "{} the settings of this model; {}{}\n  kf-host's own checkpoints, and every other way to use them, stay",
       family.empty() ? "no family of Hugging Face has" : "'" + family + "' of Hugging Face does not have",
       family.empty() ? "the nearest is " + near : "what differs:", list_of(reading, near));
}

std::string to_text_file(const Table& json) {
  Table sorted = json;
  sort(sorted);
  return to_json(Node(std::move(sorted)), JsonStyle::plain, 2) + "\n";
}

}  // namespace kf::config
