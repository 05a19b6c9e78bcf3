#include "config/rules/validate.h"

#include <algorithm>

#include "config/rules/rules.h"
#include "config/schema/schema.h"

namespace kf::config {

bool Findings::given(const std::string& key) const {
  const Node* node = find_node(job_.merged, key);
  const Row* row = find_row(key);
  return node != nullptr && node->origin.kind != Origin::Kind::preset && (row == nullptr || row->get(job_.config) != row->fallback);
}

bool Findings::usable(const std::vector<std::string>& keys) const {
  // A key is unusable when it, a part of it or the list around it is: [data.datasets[0].weight] breaks data.datasets[0], too.
  return std::none_of(keys.begin(), keys.end(), [this](const std::string& key) {
    return std::any_of(job_.broken.begin(), job_.broken.end(), [&key](const std::string& broken) {
      const std::string& longer = broken.size() > key.size() ? broken : key;
      const std::string& shorter = broken.size() > key.size() ? key : broken;
      return longer.starts_with(shorter) &&
             (longer.size() == shorter.size() || longer[shorter.size()] == '.' || longer[shorter.size()] == '[');
    });
  });
}

void Findings::problem(const std::vector<std::string>& keys, const std::string& message) {
  if (!usable(keys)) {
    return;
  }
  Problem out{{}, message};
  for (const std::string& key : keys) {
    const Node* node = find_node(job_.merged, key);
    if (!node || node->origin.kind == Origin::Kind::fallback) {
      continue;  // a default stands nowhere
    }
    if (out.origin.kind == Origin::Kind::fallback) {
      out.origin = node->origin;
    } else {
      out.others.push_back(node->origin);
    }
  }
  report_.problems.push_back(std::move(out));
}

void Findings::warn(const std::vector<std::string>& keys, const std::string& message) {
  if (usable(keys)) {
    report_.warnings.push_back(message);
  }
}

void validate(const Job& job, Report& report) {
  Findings findings(job, report);
  for (const std::vector<Rule>& rules :
       {model_rules(), train_rules(), batch_rules(), optimizer_rules(), data_rules(), job.trains ? source_rules() : std::vector<Rule>(),
        eval_rules(), phase_rules(), parallel_rules(), context_rules(), diloco_rules(), save_rules()}) {
    for (const Rule rule : rules) {
      rule(job, findings);
    }
  }
}

}  // namespace kf::config
