// ctx:write_artifact(name, data): a file of the run's own, whole or not there.

#include <algorithm>

#include "bindings/context/context_access.h"
#include "bindings/tensor/methods.h"
#include "bindings/tensor/tensor.h"
#include "bindings/value/values.h"
#include "bindings/vm/guard.h"
#include "checkpoint/files/safetensors.h"
#include "config/tree/json.h"
#include "core/ascii.h"
#include "core/error.h"
#include "core/log.h"
#include "core/text.h"

namespace kf::lua {
namespace {

constexpr char kWhere[] = "ctx:write_artifact";

std::string check_name(lua_State* L, int index) {
  std::string name = check_text(L, index, kWhere, "a file's name");
  constexpr std::size_t kLongest = 100;  // with room for what stands behind it while it is written
  const bool plain = std::all_of(name.begin(), name.end(), [](char c) { return is_alnum(c) || c == '_' || c == '-' || c == '.'; });
  KF_CHECK(plain && !name.empty() && !name.starts_with('.') && name.size() <= kLongest, Code::script,
           "{}: the name {} becomes a file in the run's folder `artifacts`; use at most {} letters, digits, '_', '-' and '.', the first no "
           "'.'",
           kWhere, kf::quoted(name.substr(0, kLongest + 1)), kLongest);
  return name;
}

bool holds_tensor(lua_State* L, int table) {
  bool found = false;
  for (lua_pushnil(L); !found && lua_next(L, table) != 0;) {
    found = box_at(L, lua_gettop(L)) != nullptr;
    lua_pop(L, found ? 2 : 1);
  }
  return found;
}

/// A string as it is, a table as JSON, tensors as safetensors.
void write(lua_State* L, int data, const fs::path& path) {
  if (const at::Tensor* const tensor = tensor_at(L, data)) {
    write_safetensors(path, {{"tensor", tensor->detach()}});
  } else if (lua_type(L, data) == LUA_TSTRING) {
    write_file_atomic(path, text_at(L, data));
  } else {
    KF_CHECK(lua_istable(L, data), Code::script, "{}: expected a string, a table or tensors as the content of '{}', got {}", kWhere,
             path.filename(), describe(L, data));
    if (holds_tensor(L, data)) {
      write_safetensors(path, read_tensors(L, data, kWhere));
    } else {
      const config::Node node = read_value(L, data, {format("{}: {}", kWhere, path.filename()), {}});
      write_file_atomic(path, config::to_json(node, config::JsonStyle::plain, 2) + "\n");
    }
  }
}

int context_write_artifact(lua_State* L) {
  const HookContext& context = self(L, "write_artifact");
  const std::string name = check_name(L, 2);
  KF_CHECK(!context.run_dir.empty(), Code::script, "{}() means nothing at {}", kWhere, event_name(slot_of(L)));
  const fs::path folder = context.run_dir / "artifacts";
  if (context.leads) {  // the others would write the same file
    try {
      std::error_code error;
      fs::create_directories(folder, error);
      KF_CHECK(!error, Code::other, "cannot make the folder {}: {}", folder, error.message());
      write(L, 3, folder / name);
    } catch (const Error& e) {
      if (e.code() == Code::script || !context.warns_of_files) {
        throw;
      }
      log::warn("{}; the run goes on without it (checkpoint.on_error)", e.what());
    }
  }
  push(L, std::string_view((folder / name).native()));
  return 1;
}

}  // namespace

void add_artifact(lua_State* L, ContextSlot* slot) { set_function(L, "write_artifact", &guarded<context_write_artifact>, slot); }

}  // namespace kf::lua
