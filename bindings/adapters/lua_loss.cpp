#include "bindings/adapters/lua_loss.h"

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>

#include <cmath>

#include "bindings/adapters/kept_state.h"
#include "bindings/session/factory.h"
#include "bindings/tensor/memory.h"
#include "bindings/tensor/tensor.h"
#include "bindings/vm/stack.h"
#include "core/log.h"
#include "core/text.h"
#include "data/sequence/batch.h"
#include "train/step/loss.h"

namespace kf::lua {
namespace {

void set_tensor(lua_State* L, const char* name, const at::Tensor& tensor) {
  if (tensor.defined()) {
    push_tensor(L, tensor);
    lua_setfield(L, -2, name);
  }
}

void push_batch(lua_State* L, const Batch& batch) {
  lua_createtable(L, 0, 4);
  set_tensor(L, "tokens", batch.tokens);
  set_tensor(L, "labels", batch.labels);
  set_tensor(L, "doc_ids", batch.doc_ids);
  set(L, "counted", static_cast<double>(batch.counted));
}

class LuaLoss final : public Loss {
 public:
  LuaLoss(std::string name, std::string where, FunctionPart part)
      : name_(std::move(name)), where_(std::move(where)), part_(std::move(part)) {}

  std::string own_name() const override { return name_; }

  at::Tensor sum(const at::Tensor& logits, const at::Tensor& labels) const override {
    Batch batch;
    batch.labels = labels;
    batch.counted = labels.ne(kIgnore).sum().item<std::int64_t>();
    return sum_of(logits, batch);
  }

  at::Tensor sum_of(const at::Tensor& logits, const Batch& batch) const override {
    Runtime& runtime = part_.function.runtime();
    lua_State* L = runtime.state();
    KF_CHECK(lua_checkstack(L, 12) != 0, Code::script, "Lua: stack overflow");
    const StackTop top(L);
    part_.function.push(L);
    push_tensor(L, logits, Memory::fresh);  // no other holds them when this returns, so the collector should know
    push_tensor(L, batch.labels.flatten());
    push_batch(L, batch);
    try {
      runtime.call(3, 2);
    } catch (const Error& error) {
      rethrow_from(error, where_, "in " + where_);
    }
    const at::Tensor* total = tensor_at(L, -2);
    KF_CHECK(total != nullptr && total->numel() == 1, Code::script,
             "{} must return the sum over the counted tokens (a tensor without dims) and their number, got {}", where_,
             describe_any(L, lua_gettop(L) - 1));
    KF_CHECK(
        !at::GradMode::is_enabled() || !logits.requires_grad() || total->requires_grad(), Code::script,
        "{} must return a sum that depends on the logits; the one it returned has no gradient (made of detached values, or in no_grad?)",
        where_);
    if (!judged_ && at::GradMode::is_enabled()) {
      judged_ = true;
      warn_of_mean(*total, logits, batch);
    }
    // The step divides by the labels that count. A loss that counts others is divided by its own number, micro-batch by micro-batch.
    const at::Tensor wide = total->to(at::kFloat).reshape({});
    const at::Tensor share =
        at::scalar_tensor(static_cast<double>(batch.counted), wide.options().dtype(at::kDouble)) / count_at(L, lua_gettop(L));
    lua_pop(L, 2);
    collect_before_use(L);               // logits and what was made of them, where backward does not need them
    return wide * share.to(at::kFloat);  // by exactly 1 in the usual case
  }

 private:
  /// A mean is taken for a sum as easily as it trains badly. Fresh weights give about ln V a token, so a *sum* of about ln V is a mean;
  /// what is nearer to it by chance is a thousandth of what losses begin with. Looked at once.
  void warn_of_mean(const at::Tensor& total, const at::Tensor& logits, const Batch& batch) const {
    constexpr std::int64_t kLeast = 16;
    if (batch.counted < kLeast || logits.dim() < 2) {
      return;
    }
    const double value = total.item<double>();
    const double fresh = std::log(static_cast<double>(logits.size(-1)));
    if (value > 0.7 * fresh && value < 1.5 * fresh) {
      log::warn(
          "{} returned {} for {} counted tokens: that is what a mean looks like; it must return the sum over the tokens, and their number",
          where_, value, batch.counted);
    }
  }

  /// The second result as a tensor: nothing waits for the device.
  at::Tensor count_at(lua_State* L, int index) const {
    if (const at::Tensor* tensor = tensor_at(L, index)) {
      KF_CHECK(tensor->numel() == 1, Code::script, "{}: the number of counted tokens must be one number, got {}", where_,
               tensor_text(*tensor));
      return tensor->detach().to(at::kDouble).reshape({});
    }
    KF_CHECK(lua_type(L, index) == LUA_TNUMBER && lua_tonumber(L, index) > 0, Code::script,
             "{} must return the number of counted tokens, above 0, as second result, got {}", where_, describe_any(L, index));
    return at::scalar_tensor(lua_tonumber(L, index), at::kDouble);
  }

  std::string name_;
  std::string where_;
  FunctionPart part_;
  mutable bool judged_ = false;
};

}  // namespace

void add_loss(lua_State* L, Session& session, config::PartInfo info) {
  const std::string where = part_text("loss", info);
  const auto factory = take_factory(L, 2, "loss");
  const std::string name = info.name;
  session.registries.loss.add(std::move(info), [factory, name, where](const PartArgs& args) -> std::unique_ptr<Loss> {
    return std::make_unique<LuaLoss>(name, where, build_function(*factory, where, args, {}, "a function(logits, labels, batch)"));
  });
}

}  // namespace kf::lua
