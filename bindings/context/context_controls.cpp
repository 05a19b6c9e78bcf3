// What a callback may ask for: ctx:stop(...), ctx:request_save(...), ... Everything is checked here, where the script's line is known.

#include <algorithm>
#include <cmath>

#include "bindings/context/context_access.h"
#include "bindings/context/rows.h"
#include "bindings/vm/guard.h"
#include "bindings/vm/pattern.h"
#include "checkpoint/files/folder.h"
#include "core/text.h"
#include "data/loader/loader.h"
#include "metrics/names/names.h"
#include "train/step/language.h"

namespace kf::lua {
namespace {

/// The number at `index`, finite and from 0 on.
double check_factor(lua_State* L, int index, const std::string& what) {
  const double value = lua_tonumber(L, index);
  KF_CHECK(lua_type(L, index) == LUA_TNUMBER && std::isfinite(value) && value >= 0, Code::script,
           "{} must be a finite number from 0 on, got {}", what, describe(L, index));
  return value;
}

std::string optional_text(lua_State* L, int index, const char* function, const char* argument) {
  return lua_isnoneornil(L, index) ? "" : check_text(L, index, function, argument);
}

int context_log(lua_State* L) {
  const HookContext& context = self(L, "log");
  const Values values = read_values(L, 2, "ctx:log");
  for (const auto& [name, value] : values) {
    KF_CHECK(!is_row_key(name), Code::script,
             "ctx:log: '{}' is a name that rows have themselves (docs/metrics.md lists them); choose another", name);
  }
  available(L, "log", context.log)(values);
  return 0;
}

int context_log_text(lua_State* L) {
  const HookContext& context = self(L, "log_text");
  const std::string name = check_text(L, 2, "ctx:log_text", "a name");
  const std::string text = check_text(L, 3, "ctx:log_text", "a text");
  constexpr std::size_t longest = 200;  // it is a name in files and pages
  const bool plain = std::none_of(name.begin(), name.end(), [](char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7f; });
  KF_CHECK(!name.empty() && name.size() <= longest && plain && is_utf8(name), Code::script,
           "ctx:log_text: the name {} must be UTF-8 of 1 to {} bytes without control characters", kf::quoted(name.substr(0, longest)),
           longest);
  available(L, "log_text", context.log_text)(name, text);
  return 0;
}

int context_stop(lua_State* L) {
  const std::string reason = optional_text(L, 2, "ctx:stop", "a reason");
  constexpr std::size_t longest = 1000;  // it stands in a line of the terminal, in the state and in the result
  KF_CHECK(reason.size() <= longest, Code::script, "ctx:stop: the reason has {} bytes; {} are the most", reason.size(), longest);
  controls(L, "stop").stop = reason;
  return 0;
}

int context_request_save(lua_State* L) {
  Controls& asked = controls(L, "request_save");
  const std::string name = optional_text(L, 2, "ctx:request_save", "a name");
  const std::string problem = name.empty() ? "" : save_name_problem(name);
  KF_CHECK(problem.empty(), Code::script, "ctx:request_save: the name {} {}", kf::quoted(name.substr(0, 101)), problem);
  asked.saves.push_back(name);
  return 0;
}

int context_request_export(lua_State* L) {
  Controls& asked = controls(L, "request_export");
  const std::string folder = optional_text(L, 2, "ctx:request_export", "a folder");
  KF_CHECK(folder.find('\0') == std::string::npos, Code::script, "ctx:request_export: the folder {} has a NUL", kf::quoted(folder));
  asked.exports.push_back(folder);
  return 0;
}

int context_request_eval(lua_State* L) {
  controls(L, "request_eval").eval = true;
  return 0;
}

int context_request_rollback(lua_State* L) {
  controls(L, "request_rollback").rollback = optional_text(L, 2, "ctx:request_rollback", "a reason");
  return 0;
}

int context_skip_update(lua_State* L) {
  Controls& asked = controls(L, "skip_update");
  const std::string_view event = event_name(slot_of(L));
  KF_CHECK(event == "backward_end", Code::script, "ctx:skip_update() means nothing at {}; call it in on_backward_end", event);
  const std::string reason = optional_text(L, 2, "ctx:skip_update", "a reason");
  asked.skip_update = reason.empty() ? "a hook skipped it" : reason;
  return 0;
}

int context_set_lr_scale(lua_State* L) {
  controls(L, "set_lr_scale").lr_scale = check_factor(L, 2, "ctx:set_lr_scale: the factor");
  return 0;
}

int context_set_mixture(lua_State* L) {
  Controls& asked = controls(L, "set_mixture");
  std::map<std::string, double> weights;
  for (const auto& [name, weight] : read_values(L, 2, "ctx:set_mixture")) {
    KF_CHECK(std::isfinite(weight) && weight >= 0, Code::script,
             "ctx:set_mixture: the weight of '{}' must be a finite number from 0 on, got {}", name, weight);
    weights[name] = weight;
  }
  if (const Loader* const data = live(slot_of(L)).data) {
    data->check({weights, {}, {}});
  }
  asked.mixture = std::move(weights);
  return 0;
}

int context_set_loss_weight(lua_State* L) {
  Controls& asked = controls(L, "set_loss_weight");
  const std::string name = check_text(L, 2, "ctx:set_loss_weight", "the name of a term");
  const std::vector<std::string> names = Language::weight_names();
  KF_CHECK(std::find(names.begin(), names.end(), name) != names.end(), Code::script, "ctx:set_loss_weight: no term '{}'{}", name,
           suggestion(name, names));
  asked.loss_weights[name] = check_factor(L, 3, "ctx:set_loss_weight: the weight");
  return 0;
}

/// ctx:freeze(pattern), ctx:unfreeze(pattern)
int ask_freezing(lua_State* L, const char* name, bool frozen) {
  Controls& asked = controls(L, name);
  const std::string function = format("ctx:{}", name);
  const std::string pattern = check_text(L, 2, function, "a name pattern");
  if (Model* const model = live(slot_of(L)).model) {
    std::vector<std::string> names;
    for (const ParameterPtr& parameter : model->parameters()) {
      names.push_back(parameter->name);
    }
    const std::vector<bool> matches = match_pattern(pattern, names, function);
    for (std::size_t i = 0; i < names.size(); ++i) {
      KF_CHECK(frozen || !matches[i] || model->parameters()[i]->trainable, Code::script,
               "{}(\"{}\"): {} is frozen for the whole run (train.frozen, train.trainable)", function, pattern, names[i]);
    }
  }
  luaL_where(L, 1);  // whether anything is left to train shows at the boundary, when all requests are known
  asked.freezing.push_back({pattern, frozen, lua_tostring(L, -1)});
  return 0;
}

int context_freeze(lua_State* L) { return ask_freezing(L, "freeze", true); }
int context_unfreeze(lua_State* L) { return ask_freezing(L, "unfreeze", false); }

int context_report(lua_State* L) {
  const HookContext& context = self(L, "report");
  KF_CHECK(lua_type(L, 2) == LUA_TNUMBER, Code::script, "ctx:report: expected a number, got {}", describe(L, 2));
  available(L, "report", context.report)(lua_tonumber(L, 2));
  return 0;
}

}  // namespace

void add_controls(lua_State* L, ContextSlot* slot) {
  set_function(L, "log", &guarded<context_log>, slot);
  set_function(L, "log_text", &guarded<context_log_text>, slot);
  set_function(L, "stop", &guarded<context_stop>, slot);
  set_function(L, "request_save", &guarded<context_request_save>, slot);
  set_function(L, "request_export", &guarded<context_request_export>, slot);
  set_function(L, "request_eval", &guarded<context_request_eval>, slot);
  set_function(L, "request_rollback", &guarded<context_request_rollback>, slot);
  set_function(L, "skip_update", &guarded<context_skip_update>, slot);
  set_function(L, "set_lr_scale", &guarded<context_set_lr_scale>, slot);
  set_function(L, "set_mixture", &guarded<context_set_mixture>, slot);
  set_function(L, "set_loss_weight", &guarded<context_set_loss_weight>, slot);
  set_function(L, "freeze", &guarded<context_freeze>, slot);
  set_function(L, "unfreeze", &guarded<context_unfreeze>, slot);
  set_function(L, "report", &guarded<context_report>, slot);
}

}  // namespace kf::lua
