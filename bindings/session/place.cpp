#include "bindings/session/place.h"

namespace kf::lua {
namespace {

config::Origin origin_at(const SourceMap* map, const std::string& file, SourceMap::Place place) {
  config::Origin origin;
  origin.kind = config::Origin::Kind::recipe;
  origin.file = file;
  origin.line = place.line;
  origin.column = place.column;
  origin.text = map ? map->line(place.line) : "";
  return origin;
}

}  // namespace

std::pair<std::string, int> call_place(lua_State* L, const Session& session) {
  lua_Debug ar;
  for (int level = 1; lua_getstack(L, level, &ar) != 0; ++level) {  // pcall(kf.run, job) stands between
    lua_getinfo(L, "Sl", &ar);
    if (ar.currentline > 0) {
      return ar.source[0] == '@' ? std::pair(std::string(ar.source + 1), ar.currentline) : std::pair(session.script, 0);
    }
  }
  return {session.script, 0};
}

Origins places_of(Session& session, const std::string& file, int line, std::vector<std::string> path) {
  const SourceMap* const map = session.source_of(file);
  for (bool exact = true; map && !path.empty(); exact = false, path.pop_back()) {
    if (const SourceMap::Entry* entry = map->find(path, line)) {
      return {origin_at(map, file, entry->key), origin_at(map, file, exact ? entry->value : entry->key)};
    }
  }
  const config::Origin whole = origin_at(map, file, {line, 0});
  return {whole, whole};
}

}  // namespace kf::lua
