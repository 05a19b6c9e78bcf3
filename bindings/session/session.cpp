#include "bindings/session/session.h"

#include "core/digest.h"
#include "core/error.h"
#include "core/fs.h"

namespace kf::lua {
namespace {

const char kSessionKey = 0;  // its address is the registry's key

std::string digest_of(const std::string& script, const Runtime& runtime) {
  Digest digest;
  if (fs::exists(script)) {  // not what a prompt or -e runs
    digest.add(read_file(script));
  }
  for (const auto& [name, path] : runtime.loaded_files()) {
    digest.add(name);
    digest.add(read_file(path));
  }
  return digest.hex();
}

}  // namespace

Session& Session::of(lua_State* L) {
  lua_pushlightuserdata(L, const_cast<char*>(&kSessionKey));
  lua_rawget(L, LUA_REGISTRYINDEX);
  auto* session = static_cast<Session*>(lua_touserdata(L, -1));
  lua_pop(L, 1);
  KF_CHECK(session, Code::script, "the script that this function belongs to has ended");
  return *session;
}

void Session::attach(lua_State* L, Session* session) {
  lua_pushlightuserdata(L, const_cast<char*>(&kSessionKey));
  lua_pushlightuserdata(L, session);
  if (!session) {
    lua_pop(L, 1);
    lua_pushnil(L);
  }
  lua_rawset(L, LUA_REGISTRYINDEX);
}

const SourceMap* Session::source_of(const std::string& file) {
  const auto known = sources.find(file);
  if (known != sources.end()) {
    return &known->second;
  }
  try {
    return &sources.emplace(file, SourceMap(read_file(file))).first->second;
  } catch (const Error&) {
    return nullptr;  // gone since it was loaded: origins do without its lines
  }
}

std::string Session::script_digest(const Runtime& runtime) const { return fs::exists(script) ? digest_of(script, runtime) : std::string(); }

}  // namespace kf::lua
