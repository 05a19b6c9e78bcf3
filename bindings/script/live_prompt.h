#pragma once
// Chunks of Lua that are said to a run: they see `ctx` and `kf` as a hook does.

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "bindings/script/script.h"
#include "train/loop/hook.h"
#include "train/loop/prompt.h"

namespace kf {
namespace lua {
class ModuleHooks;
class Ref;
}  // namespace lua

class LivePrompt {
 public:
  /// `script` is the run's own and outlives it.
  explicit LivePrompt(Script& script);
  /// Ends the hooks on modules that chunks registered.
  ~LivePrompt();
  LivePrompt(const LivePrompt&) = delete;
  LivePrompt& operator=(const LivePrompt&) = delete;

  /// Runs it with `context` as `ctx`. Outcome::changed: it wrote into weights, registered hooks on modules, set a variable for later
  /// chunks, or reached for something of the script's in which it may have left something. `cancelled` is asked while it runs: true ends it
  /// with an error; empty: nobody is asked.
  Outcome run(const std::string& chunk, HookContext& context, const std::function<bool()>& cancelled = {});

 private:
  void begin();

  Script& script_;
  std::unique_ptr<lua::Ref> compile_, show_, touched_;  // of kf.prompt; null until the first chunk
  std::vector<std::shared_ptr<lua::ModuleHooks>> module_hooks_;
};

}  // namespace kf
