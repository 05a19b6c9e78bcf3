// What `require` finds: shipped modules first, then the script's folder, then KF_LUA_PATH.

#include <algorithm>
#include <cstdlib>

#include "bindings/vm/coroutines.h"
#include "bindings/vm/guard.h"
#include "bindings/vm/host_chunk.h"
#include "bindings/vm/output.h"
#include "bindings/vm/runtime.h"
#include "core/plain_file.h"
#include "core/text.h"

namespace kf::lua {
namespace {

const ShippedModule* find_shipped(std::string_view name) {
  for (std::size_t i = 0; i < kShippedModuleCount; ++i) {
    if (kShippedModules[i].name == name) {
      return &kShippedModules[i];
    }
  }
  return nullptr;
}

/// A searcher of package.loaders: module name -> its loader, or a line for the message of a failed require.
int search_shipped(lua_State* L) {
  const std::string name = luaL_checkstring(L, 1);
  const ShippedModule* module = find_shipped(name);
  if (!module) {
    lua_pushfstring(L, "\n\tno shipped module '%s'", name.c_str());
    return 1;
  }
  const std::string chunk = "=" + name;  // shows as kf.hooks.x:12 in messages
  if (luaL_loadbuffer(L, module->source.data(), module->source.size(), chunk.c_str()) != 0) {
    fail(Code::other, "{}", lua_tostring(L, -1));
  }
  return 1;
}

/// Puts `function` at `position` of package.loaders.
void insert_searcher(lua_State* L, lua_CFunction function, int position) {
  lua_getglobal(L, "package");
  lua_getfield(L, -1, "loaders");
  for (int i = static_cast<int>(lua_objlen(L, -1)); i >= position; --i) {
    lua_rawgeti(L, -1, i);
    lua_rawseti(L, -2, i + 1);
  }
  lua_pushcfunction(L, function);
  lua_rawseti(L, -2, position);
  lua_pop(L, 2);
}

/// A searcher of package.loaders: of a module whose file would never end or wait for its writer, an error; else nothing. It stands before
/// the one that opens files.
int search_fault(lua_State* L) {
  std::string below = luaL_checkstring(L, 1);
  std::replace(below.begin(), below.end(), '.', '/');
  lua_getglobal(L, "package");
  lua_getfield(L, -1, "path");
  for (std::string candidate : split(lua_isstring(L, -1) != 0 ? lua_tostring(L, -1) : "", ';')) {
    const std::size_t mark = candidate.find('?');
    candidate = mark == std::string::npos ? candidate : candidate.replace(mark, 1, below);
    if (path_exists(candidate)) {
      const std::string fault = unlike_a_file(candidate);
      KF_CHECK(fault.empty(), Code::script, "cannot read {}: {}", candidate, fault);
      break;
    }
  }
  return 0;
}

/// Of a name of something that is there and no file, why it cannot be read; else nothing: who opens it says what is wrong.
int file_fault(lua_State* L) {
  const fs::path path = luaL_checkstring(L, 1);
  const std::string fault = path_exists(path) ? unlike_a_file(path) : "";
  if (fault.empty()) {
    return 0;
  }
  lua_pushstring(L, format("cannot read {}: {}", path, fault).c_str());
  return 1;
}

const char kReadKey = 0;    // its address is the registry's key of the files that dofile and loadfile have read, with their copies,
const char kCopiesKey = 0;  // of the copies that are read instead of what a script names

/// dofile and loadfile as they are, but what they read is known afterwards, and where there are copies (of a run's folder) these are read,
/// whatever has become of the originals; the first searcher of `require` behind what is preloaded knows copies, too.
void note_files(lua_State* L) {
  constexpr std::string_view kNoting =
      "local files, copies, load, rethrow, loaders, fault = ...\n"
      "function loadfile(name, ...)\n"
      "  local copy = type(name) == 'string' and copies['file ' .. name] or nil\n"
      "  local unlike = type(name) == 'string' and fault(copy or name)\n"
      "  if unlike then return nil, unlike end\n"
      "  if type(name) == 'string' then files[name] = copy or name end\n"
      "  return load(copy or name, ...)\n"
      "end\n"
      "table.insert(loaders, 2, function(name)\n"
      "  if not copies[name] then return nil end\n"
      "  local chunk, message = load(copies[name])\n"
      "  if not chunk then rethrow(message, 0) end\n"
      "  return chunk\n"
      "end)\n"
      "local loadfile = loadfile\n"
      "function dofile(name)\n"
      "  local chunk, message = loadfile(name)\n"
      "  if not chunk then rethrow(message, type(name) == 'string' and fault(name) == message and 2 or 0) end\n"
      "  return chunk()\n"
      "end\n";
  push_host_chunk(L, kNoting);
  for (const char* key : {&kReadKey, &kCopiesKey}) {
    lua_newtable(L);
    lua_pushlightuserdata(L, const_cast<char*>(key));
    lua_pushvalue(L, -2);
    lua_rawset(L, LUA_REGISTRYINDEX);
  }
  lua_getglobal(L, "loadfile");
  lua_getglobal(L, "error");
  lua_getglobal(L, "package");
  lua_getfield(L, -1, "loaders");
  lua_remove(L, -2);
  lua_pushcfunction(L, &guarded<file_fault>);
  lua_call(L, 6, 0);
}

std::string templates_of(const std::string& folder) {
  const std::string base = folder.empty() ? "." : folder;
  return base + "/?.lua;" + base + "/?/init.lua";
}

/// For what other languages write in another way.
std::string_view syntax_hint(std::string_view message) {
  constexpr std::pair<std::string_view, std::string_view> kHints[] = {
      {"expected near '!'", "; not equal is ~="},
      {"'=' expected near '+'", "; there is no +=: x = x + 1"},
      {"'=' expected near '-'", "; there is no -=: x = x - 1"},
      {"'<name>' expected near 'repeat'", "; repeat is a word of Lua: x:tile(2, 1), or x[\"repeat\"](x, 2, 1)"},
      {"unexpected symbol near '['", "; lists and indices in more dims are tables: { 1, 2 }"},
  };
  for (const auto& [end, hint] : kHints) {
    if (message.ends_with(end)) {
      return hint;
    }
  }
  return "";
}

}  // namespace

void Runtime::open_libraries(lua_State* L) {
  luaL_openlibs(L);
  lua_getglobal(L, LUA_TABLIBNAME);  // table.unpack, as every later Lua has it
  lua_getglobal(L, "unpack");
  lua_setfield(L, -2, "unpack");
  lua_pop(L, 1);
  insert_searcher(L, &guarded<search_shipped>, 2);  // behind package.preload
  insert_searcher(L, &guarded<search_fault>, 3);
  note_files(L);
  keep_output(L);
  limit_coroutines(L);
}

void Runtime::set_search_path(const fs::path& script_folder) {
  std::string path = templates_of(script_folder.string());
  const char* extra = std::getenv("KF_LUA_PATH");
  for (const std::string& part : split(extra ? extra : "", ';')) {
    if (!part.empty()) {
      path += ";" + (part.find('?') == std::string::npos ? templates_of(part) : part);
    }
  }
  protect([&](lua_State* L) {
    lua_getglobal(L, "package");
    lua_pushstring(L, path.c_str());
    lua_setfield(L, -2, "path");
  });
}

void Runtime::set_copies(const std::map<std::string, fs::path>& copies) {
  protect([&](lua_State* L) {
    lua_pushlightuserdata(L, const_cast<char*>(&kCopiesKey));
    lua_rawget(L, LUA_REGISTRYINDEX);
    for (const auto& [asked, path] : copies) {
      lua_pushstring(L, path.c_str());
      lua_setfield(L, -2, asked.c_str());
    }
  });
}

std::map<std::string, fs::path> Runtime::loaded_files() const {
  std::map<std::string, fs::path> files;
  lua_State* L = current_;
  const StackTop top(L);
  lua_getglobal(L, "package");
  lua_getfield(L, -1, "path");
  const std::string templates = lua_tostring(L, -1);
  lua_getfield(L, -2, "loaded");
  for (lua_pushnil(L); lua_next(L, -2) != 0; lua_pop(L, 1)) {
    if (lua_type(L, -2) != LUA_TSTRING || find_shipped(lua_tostring(L, -2)) != nullptr) {
      continue;
    }
    std::string name = lua_tostring(L, -2);
    lua_pushlightuserdata(L, const_cast<char*>(&kCopiesKey));
    lua_rawget(L, LUA_REGISTRYINDEX);
    lua_getfield(L, -1, name.c_str());
    if (lua_isstring(L, -1) != 0) {
      files[name] = lua_tostring(L, -1);
    }
    lua_pop(L, 2);
    std::string below = name;
    std::replace(below.begin(), below.end(), '.', '/');
    for (std::string candidate : split(templates, ';')) {
      candidate.replace(candidate.find('?'), 1, below);
      if (!files.contains(name) && fs::is_regular_file(candidate)) {
        files[name] = candidate;
      }
    }
  }
  lua_pushlightuserdata(L, const_cast<char*>(&kReadKey));
  lua_rawget(L, LUA_REGISTRYINDEX);
  for (lua_pushnil(L); lua_next(L, -2) != 0; lua_pop(L, 1)) {
    const std::string file = lua_tostring(L, -1);
    if (fs::is_regular_file(file)) {
      files[std::string("file ") + lua_tostring(L, -2)] = file;
    }
  }
  return files;
}

void Runtime::load_file(const fs::path& path, const std::string& shown) {
  std::string text;
  try {
    text = read_file(path);
  } catch (const Error& error) {
    throw Error(Code::script, error.what());
  }
  if (text.starts_with("#")) {  // "#!/usr/bin/env kf-host": the line stays, so that the others keep their numbers
    text.insert(0, "--");
  }
  KF_CHECK(!text.starts_with('\x1b'), Code::script, "{}: is compiled Lua; give the source", shown);
  const std::string chunk = "@" + shown;
  lua_State* L = current_;
  if (luaL_loadbuffer(L, text.data(), text.size(), chunk.c_str()) != 0) {
    std::string message = lua_tostring(L, -1);
    lua_pop(L, 1);
    // Lua shortens long paths; put the whole one back.
    const std::size_t line = message.find(':');
    if (message.starts_with("...") && line != std::string::npos) {
      message.replace(0, line, shown);
    }
    throw Error(Code::script, message.append(syntax_hint(message)));
  }
}

}  // namespace kf::lua
