#pragma once
// What a script may not do to the run whose hooks are read from it again: end it, or hold it up for ever.

#include <functional>
#include <memory>

#include "bindings/script/script.h"

namespace kf {
namespace lua {
class Cancellation;
class Ref;
}  // namespace lua

/// While one exists, os.exit is an error in the script, and what runs in it ends with an error ("interrupted: WHY") once `cancelled` says
/// so. Nothing is compiled meanwhile, because machine code could not be ended.
class ReloadGuard {
 public:
  /// Before the script runs. `script` and `cancelled` outlive this; `cancelled` may be empty: nobody is asked.
  ReloadGuard(Script& script, const std::function<bool()>& cancelled, const char* why);
  ~ReloadGuard();
  ReloadGuard(const ReloadGuard&) = delete;
  ReloadGuard& operator=(const ReloadGuard&) = delete;

 private:
  Script& script_;
  std::unique_ptr<lua::Ref> restore_;
  std::unique_ptr<lua::Cancellation> cancellation_;
};

}  // namespace kf
