#include "bindings/nn/loaded_model.h"

#include <ATen/ATen.h>

#include "bindings/nn/module_box.h"
#include "bindings/session.h"
#include "bindings/stack.h"
#include "bindings/tensor/tensor.h"
#include "core/error.h"
#include "data/batch.h"
#include "model/model.h"
#include "train/loss.h"

namespace kf::lua {
namespace {

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
  push_tensor(L, static_cast<Model&>(module).forward(tokens, context), Memory::fresh);
  return 1;
}

}  // namespace

int load_model(lua_State* L) {
  const Session& session = Session::of(L);
  const std::string path = check_text(L, 1, "kf.load_model", "the folder of a checkpoint");
  KF_CHECK(session.host.load_model, Code::script, "kf.load_model: this program checks jobs and loads no models");
  const Crossing crossing(L);  // parts of the model may be Lua
  const std::shared_ptr<Model> model = session.host.load_model(path);
  for (const ParameterPtr& parameter : model->parameters()) {
    parameter->value.set_requires_grad(false);
  }
  push_module(L, model, call_model, "model");
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
  const PartArgs args{defaults, Registries::options_of(defaults, "loss", name), session.registries};
  const Crossing crossing(L);
  push_tensor(L, session.registries.loss.get(name).factory(args)->sum(logits, labels), Memory::fresh);
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
