#include "config/rules/unbuilt.h"

#include <algorithm>

#include "config/schema/schema.h"
#include "core/text.h"

namespace kf::config {
namespace {

/// What setting a key does meanwhile.
enum class Means { nothing, refusal };

struct UnbuiltKey {
  const char* key;
  std::vector<const char*> honest;  // the values that say what happens anyway, or work
  const char* reason;
  Means means = Means::nothing;
};

struct Unbuilt {
  const char* title;
  const char* sentence;  // what happens instead, for README
  std::vector<UnbuiltKey> keys;
};

const std::vector<Unbuilt>& unbuilt() {
  static const std::vector<Unbuilt> all{
      {"Several GPUs",
       "Several processes (`kf-host --nproc N`) train on the CPUs of one machine or several; one process trains on a GPU. The jobs of "
       "`configs/` for 8 to 32 GPUs can be checked (`kf-host config check JOB --world N`) and planned (`kf-host plan`), not run.",
       {{"distributed.backend", {"'cpu:gloo,cuda:nccl'"}, "ranks are on CPUs and talk over Gloo"},
        {"train.nccl_health_check_interval", {"0"}, "there is no communicator of NCCL to check"}}},
      {"fp8",
       "A run in fp8 is refused; bf16, fp16 and fp32 work.",
       {{"train.mixed_precision", {"'bf16'", "'fp16'", "'fp32'"}, "there are no fp8 products; take bf16", Means::refusal}}},
      {"Quantized weights", "Quantized files are refused, so adapters (`[adapter]`) stand beside weights of full precision.", {}},
  };
  return all;
}

/// Calls `visit` with every key of the table.
template <typename Visit>
void each_key(Visit visit) {
  for (const Unbuilt& feature : unbuilt()) {
    for (const UnbuiltKey& key : feature.keys) {
      visit(key);
    }
  }
}

bool is_honest(const UnbuiltKey& key, const std::string& value) {
  return std::any_of(key.honest.begin(), key.honest.end(), [&](const char* honest) { return value == honest; });
}

}  // namespace

std::vector<std::string> keys_without_effect(const Loaded& loaded) {
  std::vector<std::string> out;
  each_key([&](const UnbuiltKey& key) {
    const std::string value = to_text(find_row(key.key)->get(loaded.config));
    if (key.means == Means::nothing && find_node(loaded.merged, key.key) && !is_honest(key, value)) {
      out.push_back(format("{} = {} has no effect yet: {}", key.key, value, key.reason));
    }
  });
  return out;
}

std::vector<std::string> keys_refused(const Config& config) {
  std::vector<std::string> out;
  each_key([&](const UnbuiltKey& key) {
    const std::string value = to_text(find_row(key.key)->get(config));
    if (key.means == Means::refusal && !is_honest(key, value)) {
      out.push_back(format("{} = {} is not built yet: {}", key.key, value, key.reason));
    }
  });
  return out;
}

std::optional<std::string> unbuilt_note(const std::string& wanted) {
  std::optional<std::string> out;
  each_key([&](const UnbuiltKey& key) {
    if (key.key == wanted && key.means == Means::nothing) {
      out = format("No effect yet: {}.", key.reason);
    } else if (key.key == wanted) {
      std::vector<std::string> works(key.honest.begin(), key.honest.end());
      out = format("Not built yet: {}; a run takes {} only.", key.reason, join(works, ", "));
    }
  });
  return out;
}

std::string unbuilt_markdown() {
  std::string out;
  for (const Unbuilt& feature : unbuilt()) {
    std::vector<std::string> keys;
    for (const UnbuiltKey& key : feature.keys) {
      keys.push_back(format("`{}`", key.key));
    }
    out += format("- **{}.** {}{}\n", feature.title, feature.sentence, keys.empty() ? "" : " Settings: " + join(keys, ", ") + ".");
  }
  return out;
}

}  // namespace kf::config
