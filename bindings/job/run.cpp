#include "bindings/job/run.h"

#include <utility>

#include "bindings/context/hook_context.h"
#include "bindings/context/rows.h"
#include "bindings/job/recipe.h"
#include "bindings/session/place.h"
#include "bindings/session/session.h"
#include "bindings/tensor/numbers.h"
#include "bindings/vm/guard.h"
#include "bindings/vm/stack.h"
#include "core/text.h"

namespace kf::lua {
namespace {

/// While one exists the script waits for its run: what is called is outside of its phase.
class RunGuard {
 public:
  explicit RunGuard(Session& session) : session_(session), in_phase_(std::exchange(session.in_phase, false)) {
    session.running = true;
    session.ran = true;
  }
  ~RunGuard() {
    session_.running = false;
    session_.in_phase = in_phase_;
  }
  RunGuard(const RunGuard&) = delete;
  RunGuard& operator=(const RunGuard&) = delete;

 private:
  Session& session_;
  bool in_phase_;
};

}  // namespace

int run_job(lua_State* L) {
  Session& session = Session::of(L);
  KF_CHECK(lua_istable(L, 1), Code::script, "kf.run: expected a table (a job), got {}", describe(L, 1));
  KF_CHECK(!session.running && !(session.in_phase && session.run_is_on()), Code::script,
           "kf.run: a run is on already; start the next one when kf.run has returned, not in a callback");
  KF_CHECK(session.in_phase, Code::script, "kf.run: the script has ended; call it while the script runs, not in a callback");
  KF_CHECK(session.host.run, Code::script, "kf.run: nothing is trained here");
  const auto [file, line] = call_place(L, session);
  TableHooks hooks(session);
  config::Node job = read_recipe(L, 1, session, file, line, hooks);
  const Crossing crossing(L);
  const RunGuard guard(session);
  push_result(L, session.host.run(std::move(job)));
  return 1;
}

}  // namespace kf::lua
