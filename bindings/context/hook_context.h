#pragma once
// `ctx`: one userdata, lent to whichever hook runs.

#include <lua.hpp>

#include <memory>
#include <utility>
#include <vector>

#include "bindings/session/session.h"
#include "train/loop/hook.h"

namespace kf::lua {

struct Lease;
class ModuleHooks;

/// What the userdata holds. Field names are kept as Lua's own interned pointers, so that reading a field compares addresses.
struct ContextSlot {
  static constexpr int kFields = 9;

  HookContext* context = nullptr;  // null outside of callbacks
  Event event = Event::train_begin;
  const char* names[kFields] = {};
  std::int64_t eval_step = -1;  // of the table that `ctx.eval` gave last: made anew when the evaluation is another
  double eval_loss = 0;
  std::shared_ptr<Lease> lease;                                // of tensors that the running callback was lent; null while it has none
  bool weights_lent = false;                                   // it may have changed masters: what forward reads must follow
  std::vector<std::shared_ptr<ModuleHooks>>* hooks = nullptr;  // of the hook that runs; null in other callbacks
};

/// After a callback: what it was lent ends, and changed weights are published.
void end_lease(ContextSlot& slot);
/// Makes forward see what a callback wrote into weights.
void publish_weights(ContextSlot& slot);

/// Makes the userdata.
HookContextHandle make_hook_context(lua_State* L);

/// Pushes the table for an evaluation: step, loss, perplexity, tokens.
void push_eval(lua_State* L, const EvalResult& eval);
/// The same table as long as the evaluation is the same, without making one each time.
void push_cached_eval(lua_State* L, int context, ContextSlot& slot, const EvalResult& eval);

/// Lends a context to Lua for one callback; the earlier one, if any, returns afterwards.
class LentContext {
 public:
  /// `hooks`: where functions on modules and weights are kept; null where none may be registered.
  LentContext(ContextSlot& slot, HookContext& context, Event event, std::vector<std::shared_ptr<ModuleHooks>>* hooks = nullptr)
      : slot_(slot),
        before_(slot.context),
        before_event_(slot.event),
        before_lease_(std::exchange(slot.lease, nullptr)),
        before_hooks_(std::exchange(slot.hooks, hooks)) {
    slot.context = &context;
    slot.event = event;
  }
  ~LentContext() {
    if (slot_.lease || slot_.weights_lent) {
      end_lease(slot_);
    }
    slot_.lease = std::move(before_lease_);
    slot_.context = before_;
    slot_.event = before_event_;
    slot_.hooks = before_hooks_;
  }
  LentContext(const LentContext&) = delete;
  LentContext& operator=(const LentContext&) = delete;

 private:
  ContextSlot& slot_;
  HookContext* before_;
  Event before_event_;
  std::shared_ptr<Lease> before_lease_;
  std::vector<std::shared_ptr<ModuleHooks>>* before_hooks_;
};

}  // namespace kf::lua
