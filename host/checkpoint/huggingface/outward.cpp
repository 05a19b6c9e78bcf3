#include "checkpoint/huggingface/outward.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>

#include "checkpoint/huggingface/names.h"
#include "core/error.h"
#include "core/text.h"

namespace kf::huggingface {
namespace {

std::string text_in(const config::Table& json, const char* key) {
  const config::Node* const node = json.find(key);
  const auto* const text = node != nullptr ? std::get_if<std::string>(&node->value) : nullptr;
  return text != nullptr ? *text : "";
}

/// Names that files of a family had once, or have in another form of it: they are read, and not written.
std::set<std::string> not_written(const std::string& type, const config::Table& json) {
  static const std::map<std::string, std::set<std::string>> older{
      {"exaone_moe", {"model.layers.{l}.mlp.gate.e_score_correction_bias"}},
  };
  if (type == "falcon" || type == "bloom") {  // two norms have names of their own in the newer form of the block
    const bool grouped = json.find("new_decoder_architecture") != nullptr && *json.find("new_decoder_architecture") == config::Node(true);
    const config::Node* const norms = json.find("num_ln_in_parallel_attn");
    const bool one = norms != nullptr && *norms == config::Node(std::int64_t{1});
    const std::string layer = "transformer.h.{l}.";
    std::set<std::string> out;
    for (const std::string part : {".weight", ".bias"}) {
      for (const char* name : {"input_layernorm", "post_attention_layernorm", "ln_attn", "ln_mlp"}) {
        if (std::string_view(name).starts_with("ln_") != (grouped && !one)) {
          out.insert(layer + name + part);
        }
      }
    }
    return out;
  }
  const auto found = older.find(type);
  return found == older.end() ? std::set<std::string>() : found->second;
}

/// Collects the file's tensors as ours come by.
class Outward {
 public:
  Outward(const std::string& type, const config::Table& json, Model& model)
      : rules_(rules_for(type, numbered_shared_experts(model))), left_(not_written(type, json)) {}

  /// False where no form of the weight has names in the table.
  bool add(const ParameterPtr& parameter) {
    for (const std::vector<StoredView>& form : parameter->forms()) {
      if (std::all_of(form.begin(), form.end(), [&](const StoredView& view) { return rule_for(view.name).has_value(); })) {
        for (const StoredView& view : form) {
          put(parameter, view);
        }
        return true;
      }
    }
    return false;
  }

  std::vector<OutwardTensor> take() {
    for (OutwardTensor& tensor : tensors_) {
      std::stable_sort(tensor.parts.begin(), tensor.parts.end(),
                       [&](const OutwardPart& a, const OutwardPart& b) { return *rule_for(a.view.name) < *rule_for(b.view.name); });
    }
    return std::move(tensors_);
  }

 private:
  std::optional<std::size_t> rule_for(const std::string& ours) const {
    for (std::size_t i = rules_.size(); i-- > 0;) {  // what a table says last is what the family has of its own
      if (left_.count(rules_[i].theirs) == 0 && match(rules_[i].ours, ours)) {
        return i;
      }
    }
    return std::nullopt;
  }

  void put(const ParameterPtr& parameter, const StoredView& view) {
    const Rule& rule = rules_[*rule_for(view.name)];
    const std::string theirs = filled(rule.theirs, *match(rule.ours, view.name));
    const auto [place, fresh] = places_.emplace(theirs, tensors_.size());
    if (fresh) {
      tensors_.push_back({theirs, {}});
    }
    tensors_[place->second].parts.push_back({rule.layout, parameter, view});
  }

  Rules rules_;
  std::set<std::string> left_;
  std::vector<OutwardTensor> tensors_;
  std::map<std::string, std::size_t> places_;
};

}  // namespace

std::int64_t numbered_shared_experts(Model& model) {
  std::int64_t out = 0;
  for (const ParameterPtr& parameter : model.parameters()) {
    const auto numbers = match("layers.{l}.mlp.shared_expert.{n}.down_proj.weight", parameter->name);
    out = numbers ? std::max<std::int64_t>(out, std::stoll(numbers->back()) + 1) : out;
  }
  return out;
}

std::vector<OutwardTensor> outward_tensors(const config::Table& json, Model& model) {
  const std::string type = text_in(json, "model_type");
  Outward outward(type, json, model);
  std::vector<std::string> unknown;
  for (const ParameterPtr& parameter : model.parameters()) {
    if (!outward.add(parameter) && !parameter->name.starts_with("mtp.") && parameter->counted) {
      unknown.push_back(parameter->name);
    }
  }
  const std::vector<std::string> shown(unknown.begin(),
                                       unknown.begin() + static_cast<std::ptrdiff_t>(std::min<std::size_t>(unknown.size(), 10)));
  KF_CHECK(unknown.empty(), Code::checkpoint, "a {} model of Hugging Face has no tensors for these weights ({}): {}{}", type,
           unknown.size(), join(shown, ", "), unknown.size() > shown.size() ? ", ..." : "");
  return outward.take();
}

}  // namespace kf::huggingface
