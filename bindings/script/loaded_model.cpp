#include "bindings/script/loaded_model.h"

#include <ATen/ATen.h>

#include <utility>

#include "bindings/context/generate_call.h"
#include "bindings/context/hook_context.h"
#include "bindings/nn/module_box.h"
#include "bindings/session/session.h"
#include "bindings/tensor/tensor.h"
#include "bindings/value/values.h"
#include "bindings/vm/guard.h"
#include "bindings/vm/stack.h"
#include "config/load/convert.h"
#include "config/schema/schema.h"
#include "config/tree/json.h"
#include "core/error.h"
#include "core/text.h"
#include "data/sequence/batch.h"
#include "kernels/product/products_scope.h"
#include "model/model.h"
#include "registry/registries.h"
#include "train/step/loss.h"

namespace kf::lua {
namespace {

/// The model as a module of its own, with what the host can do with it.
class GuestModel final : public Module {
 public:
  explicit GuestModel(ScriptModel host) : host_(std::move(host)) { add_child("", host_.model); }
  const ScriptModel& host() const { return host_; }

 private:
  ScriptModel host_;
};

/// The model that a method was called on.
const ScriptModel& self(lua_State* L, const char* method) {
  const auto module = std::dynamic_pointer_cast<const GuestModel>(module_at(L, 1));
  KF_CHECK(module != nullptr, Code::script, "model:{}: call it with a colon on what kf.load_model gave, got {}", method, describe(L, 1));
  return module->host();  // the value at 1 keeps it alive
}

/// model(tokens [, { doc_ids }])
int call_model(lua_State* L, Module& module) {
  const at::Tensor& tokens = check_tensor(L, 2, "model");
  KF_CHECK(tokens.dim() == 2 && tokens.scalar_type() == at::kLong, Code::script, "model: expected tokens int64 (B, T), got {}",
           tensor_text(tokens));
  ForwardContext context;
  if (lua_istable(L, 3)) {
    lua_getfield(L, 3, "doc_ids");
    if (!lua_isnil(L, -1)) {
      context.doc_ids = check_tensor(L, lua_gettop(L), "model: doc_ids");
    }
    lua_pop(L, 1);
  }
  const ScriptModel& host = static_cast<GuestModel&>(module).host();
  const ProductsScope products(host.products);  // a run that this model is called in goes on with its own
  push_tensor(L, host.model->forward(tokens, context), Memory::fresh);
  return 1;
}

/// model:generate(prompt or prompts [, options])
int model_generate(lua_State* L) {
  const ScriptModel& host = self(L, "generate");
  return call_generate(L, "model:generate", host.generate_defaults, host.generate);
}

/// The key is one of [eval] and the value fits it: said here, since what follows names command lines.
void check_setting(const config::Catalog& catalog, const std::string& key, const config::Node& value) {
  const config::Row* const row = config::find_row("eval." + key);
  if (row == nullptr) {
    std::vector<std::string> names;
    for (const config::Row& one : config::rows()) {
      if (one.section == "eval") {
        names.push_back(one.name);
      }
    }
    fail(Code::script, "model:evaluate: [eval] has no key '{}'{}", key, suggestion(key, names));
  }
  config::Report report;
  config::Converter(catalog, report).convert(value, *row, "eval." + key);
  if (!report.problems.empty()) {
    fail(Code::script, "model:evaluate: {}", report.problems.front().message);
  }
}

/// The settings of [eval] in the table at `index`, or a path, as overrides.
std::vector<std::string> evaluation_overrides(lua_State* L, int index) {
  if (lua_isnoneornil(L, index)) {
    return {};
  }
  std::vector<std::string> out;
  if (lua_type(L, index) == LUA_TSTRING) {
    out.push_back("--eval.dataset_path=" + check_text(L, index, "model:evaluate", "a path"));
    out.emplace_back("--eval.file_pattern=");  // of a folder every file whose name says data
    out.emplace_back("--eval.steps=-1");
    return out;
  }
  KF_CHECK(lua_istable(L, index), Code::script, "model:evaluate: expected a path, or a table of keys of [eval], got {}",
           describe_any(L, index));
  const config::Node settings = read_value(L, index, {"model:evaluate", {}});
  KF_CHECK(settings.table() != nullptr, Code::script, "model:evaluate: expected keys of [eval] (dataset_path, steps, ...), not a list");
  const config::Catalog catalog = Session::of(L).registries.catalog();
  for (const auto& [key, value] : *settings.table()) {
    check_setting(catalog, key, value);
    const auto* const text = std::get_if<std::string>(&value.value);
    out.push_back(format("--eval.{}={}", key, text != nullptr ? *text : config::to_json(value)));
  }
  return out;
}

/// model:evaluate([path or keys of [eval]]) -> a table like ctx.eval
int model_evaluate(lua_State* L) {
  const ScriptModel& host = self(L, "evaluate");
  const std::vector<std::string> overrides = evaluation_overrides(L, 2);
  const Crossing crossing(L);
  push_eval(L, host.evaluate(overrides));
  return 1;
}

lua_CFunction model_methods(std::string_view name) {
  return name == "generate" ? &guarded<model_generate> : name == "evaluate" ? &guarded<model_evaluate> : nullptr;
}

/// A model that joins a run is no part of it: its checkpoints do not keep what the model's parts keep.
class WithoutStates {
 public:
  explicit WithoutStates(Session& session) : session_(session), before_(std::exchange(session.states, nullptr)) {}
  ~WithoutStates() { session_.states = before_; }
  WithoutStates(const WithoutStates&) = delete;
  WithoutStates& operator=(const WithoutStates&) = delete;

 private:
  Session& session_;
  PartStates* before_;
};

/// `weights` of the table at `index`: which of the checkpoint's weights are wanted.
std::string weights_option(lua_State* L, int index) {
  if (lua_isnoneornil(L, index)) {
    return "saved";
  }
  KF_CHECK(lua_istable(L, index), Code::script, "kf.load_model: expected options such as { weights = \"average\" }, got {}",
           describe(L, index));
  std::string out = "saved";
  for (lua_pushnil(L); lua_next(L, index) != 0; lua_pop(L, 1)) {
    const std::string key = lua_type(L, -2) == LUA_TSTRING ? lua_tostring(L, -2) : describe(L, -2);
    KF_CHECK(key == "weights", Code::script, "kf.load_model: no option '{}'; there is weights", key);
    out = check_text(L, lua_gettop(L), "kf.load_model", "weights (\"saved\", \"average\" or \"raw\")");
    KF_CHECK(out == "saved" || out == "average" || out == "raw", Code::script,
             "kf.load_model: weights must be \"saved\", \"average\" or \"raw\", got {}", kf::quoted(out));
  }
  return out;
}

}  // namespace

int load_model(lua_State* L) {
  Session& session = Session::of(L);
  const std::string path = check_text(L, 1, "kf.load_model", "the folder of a checkpoint");
  const std::string weights = weights_option(L, 2);
  KF_CHECK(session.host.load_model, Code::script, "kf.load_model: this program checks jobs and loads no models");
  const Crossing crossing(L);  // parts of the model may be Lua
  const WithoutStates guest(session);
  std::shared_ptr<GuestModel> model;
  try {
    model = std::make_shared<GuestModel>(session.host.load_model(path, weights));
  } catch (Error& error) {
    throw error.context(format("in kf.load_model({})", kf::quoted(path)));
  }
  for (const ParameterPtr& parameter : model->parameters()) {
    parameter->value.set_requires_grad(false);
  }
  push_module(L, std::move(model), call_model, "model", model_methods);
  return 1;
}

int native_loss(lua_State* L) {
  const Session& session = Session::of(L);
  const std::string name = check_text(L, 1, "kf.losses", "a name");
  const std::string where = "kf.losses." + name;
  const at::Tensor& logits = check_tensor(L, 2, where);
  const at::Tensor& labels = check_tensor(L, 3, where);
  KF_CHECK(logits.dim() == 2 && labels.dim() == 1 && logits.size(0) == labels.size(0), Code::script,
           "{}: expected logits (N, V) and labels (N), got {} and {}", where, tensor_text(logits), tensor_text(labels));
  const config::Config defaults;
  const Crossing crossing(L);
  push_tensor(L, make_part(session.registries.loss, name, defaults, session.registries)->sum(logits, labels), Memory::fresh);
  push_tensor(L, labels.ne(kIgnore).sum(), Memory::fresh);
  return 2;
}

int loss_names(lua_State* L) {
  lua_newtable(L);
  int number = 0;
  for (const auto& entry : Session::of(L).registries.loss.entries()) {
    push(L, std::string_view(entry.info.name));
    lua_rawseti(L, -2, ++number);
  }
  return 1;
}

}  // namespace kf::lua
