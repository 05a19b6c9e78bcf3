#pragma once
// What goes wrong with a checkpoint is one kind of error.

#include "core/error.h"
#include "core/fs.h"

namespace kf {

/// Whatever goes wrong with files in `body` is a checkpoint error; a script's own errors (a Lua optimizer's state) stay what they are.
template <class Body>
auto as_checkpoint_error(Body&& body) {
  try {
    return body();
  } catch (const fs::filesystem_error& e) {
    throw Error(Code::checkpoint, e.what());
  } catch (const Error& e) {
    throw Error(e.code() == Code::script ? Code::script : Code::checkpoint, e.what());
  }
}

}  // namespace kf
