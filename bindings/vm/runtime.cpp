#include "bindings/vm/runtime.h"

#include <pthread.h>

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <map>

#include "bindings/vm/guard.h"
#include "bindings/vm/stack.h"
#include "core/log.h"
#include "core/out_of_memory.h"
#include "core/text.h"

namespace kf::lua {
namespace {

const char kRuntimeKey = 0;  // its address is the registry's key
constexpr int kMaxTraceLines = 16;
constexpr int kInnerFrames = 300, kOuterFrames = 20;  // that are looked at, of a deep recursion

std::string first_line(std::string_view text) { return std::string(text.substr(0, text.find('\n'))); }

/// The name under which messages show a chunk: the whole path where Lua's own would be cut.
std::string shown_source(const lua_Debug& ar) { return ar.source[0] == '@' ? ar.source + 1 : ar.short_src; }

/// "recipe.lua:12 in on_step_end", or "" for frames that say nothing.
std::string frame_text(const lua_Debug& ar) {
  const std::string name = ar.name ? ar.name : "";
  if (ar.currentline > 0) {
    std::string where = format("{}:{}", shown_source(ar), ar.currentline);
    if (ar.what == std::string_view("main")) {
      return where;
    }
    return name.empty() ? format("{} in the function of line {}", where, ar.linedefined) : format("{} in {}", where, name);
  }
  return name.empty() || name == "error" || name == "__index" ? "" : "the host's " + name;
}

/// Messages hold Lua's short form of a long path ("...tail/recipe.lua:12:"); this puts the whole path back.
std::string with_full_path(std::string message, const lua_Debug& ar) {
  const std::string_view shortened = ar.short_src;
  if (shortened.starts_with("...") && ar.source[0] == '@' && message.starts_with(std::string(shortened) + ":")) {
    message.replace(0, shortened.size(), ar.source + 1);
  }
  return message;
}

/// Lua 5.1 asks nobody how to compare values of two types: its message says nothing of tensors. And a method without its () is a function.
std::string hint_for(std::string_view message) {
  if (message.ends_with("(table expected, got userdata)")) {
    return "; the rows of a tensor: for i, row in t:iter() do; its numbers: t:tolist()";
  }
  const std::size_t named = message.find("bad argument #");
  if (named != std::string_view::npos && message.ends_with("(number expected, got userdata)")) {
    const std::size_t first = message.find('\'', named);
    const std::string_view name = message.substr(first + 1, message.find('\'', first + 1) - first - 1);
    return format("; of a tensor it is a method, t:{}(), and t:item() is the number of one element", name);
  }
  const bool compares = message.find("attempt to compare userdata with ") != std::string_view::npos ||
                        (message.find("attempt to compare ") != std::string_view::npos && message.ends_with(" with userdata"));
  if (compares) {
    return "; tensors are compared with methods: a:lt(b), a:ge(b)";
  }
  if (message.ends_with("global 'kf' (a nil value)")) {
    return "; begin with: local kf = require(\"kf\")";
  }
  const bool function = message.ends_with("(a function value)") || message.ends_with(" with function") ||
                        message.find("attempt to compare function with ") != std::string_view::npos ||
                        message.ends_with("attempt to index a function value");
  return function && message.find("attempt to ") != std::string_view::npos ? "; that is a function: call it, as in ctx:loss()" : "";
}

/// A value as a message shows it: {code = 7, path = "x"}, nested tables to a depth of two. Calls nothing of the script.
std::string shown_value(lua_State* L, int index, int depth) {
  constexpr std::size_t kMost = 8;  // fields of one table
  switch (lua_type(L, index)) {
    case LUA_TTABLE: break;
    case LUA_TNUMBER: return to_text(lua_tonumber(L, index));
    case LUA_TSTRING:
    case LUA_TBOOLEAN: return describe(L, index);
    default: return format("a {}", luaL_typename(L, index));
  }
  const int table = index < 0 ? lua_gettop(L) + index + 1 : index;
  if (lua_checkstack(L, 4) == 0) {
    return "{...}";
  }
  if (depth == 0) {
    lua_pushnil(L);
    const bool empty = lua_next(L, table) == 0;
    lua_settop(L, empty ? lua_gettop(L) : lua_gettop(L) - 2);
    return empty ? "{}" : "{...}";
  }
  std::map<std::string, std::string> fields;  // in one order, whatever Lua's own is
  std::vector<std::string> items;
  const auto length = static_cast<int>(lua_objlen(L, table));
  for (int i = 1; i <= length && items.size() <= kMost; ++i) {
    lua_rawgeti(L, table, i);
    items.push_back(shown_value(L, -1, depth - 1));
    lua_pop(L, 1);
  }
  for (lua_pushnil(L); lua_next(L, table) != 0; lua_pop(L, 1)) {
    if (lua_type(L, -2) == LUA_TSTRING && fields.size() <= kMost) {
      fields[lua_tostring(L, -2)] = shown_value(L, -1, depth - 1);
    }
  }
  for (const auto& [name, text] : fields) {
    items.push_back(name + " = " + text);
  }
  if (items.size() > kMost) {
    items.resize(kMost);
    items.emplace_back("...");
  }
  return "{" + join(items, ", ") + "}";
}

/// error({ message = "disk full", code = 7 }) says: disk full {code = 7}
std::string table_text(lua_State* L, int index) {
  for (const char* const name : {"message", "msg"}) {
    lua_pushstring(L, name);
    lua_rawget(L, index);
    if (lua_type(L, -1) == LUA_TSTRING) {
      std::string text = lua_tostring(L, -1);
      lua_pop(L, 1);
      lua_newtable(L);  // the rest
      for (lua_pushnil(L); lua_next(L, index) != 0; lua_pop(L, 1)) {
        if (lua_type(L, -2) != LUA_TSTRING || lua_tostring(L, -2) != std::string_view(name)) {
          lua_pushvalue(L, -2);
          lua_pushvalue(L, -2);
          lua_rawset(L, -5);
        }
      }
      const std::string rest = shown_value(L, -1, 2);
      lua_pop(L, 1);
      return rest == "{}" ? text : text + " " + rest;
    }
    lua_pop(L, 1);
  }
  return shown_value(L, index, 2);
}

std::string message_text(lua_State* L, int index) {
  if (lua_isstring(L, index)) {
    std::size_t size = 0;
    const char* text = lua_tolstring(L, index, &size);
    return std::string(text, size) + hint_for({text, size});
  }
  if (luaL_callmeta(L, index, "__tostring")) {
    const char* text = lua_tostring(L, -1);
    return text ? text : "(error object)";
  }
  if (lua_istable(L, index)) {
    return table_text(L, index);
  }
  return format("(error object is a {} value)", luaL_typename(L, index));
}

/// The last frame came `times` more.
void end_repetition(std::vector<std::string>& trace, int times) {
  if (times > 0 && !trace.empty() && static_cast<int>(trace.size()) < kMaxTraceLines) {
    trace.back() += format(", and {} times more", times);
  }
}

/// How many frames there are. Lua walks from the innermost to each frame that it is asked for: a deep recursion must not be asked for all.
int depth_of(lua_State* L) {
  lua_Debug ar;
  int some = 0;
  int none = 1;
  while (lua_getstack(L, none, &ar) != 0) {
    some = none;
    none *= 2;
  }
  while (none - some > 1) {
    const int middle = some + (none - some) / 2;
    (lua_getstack(L, middle, &ar) != 0 ? some : none) = middle;
  }
  return none;
}

struct ProtectedBody {
  void* self;
  void (*body)(void*, lua_State*);
};

int run_protected(lua_State* L) {
  const auto* work = static_cast<const ProtectedBody*>(lua_touserdata(L, 1));
  lua_settop(L, 0);
  work->body(work->self, L);
  return 0;
}

/// The lowest address that calls may reach on this thread's stack: what is left below is for the program and for the message.
std::uintptr_t usable_stack_end() {
  pthread_attr_t attributes;
  if (::pthread_getattr_np(::pthread_self(), &attributes) != 0) {
    return 0;
  }
  void* lowest = nullptr;
  std::size_t size = 0;
  ::pthread_attr_getstack(&attributes, &lowest, &size);
  ::pthread_attr_destroy(&attributes);
  constexpr std::size_t kKept = std::size_t{1} << 20;
  return reinterpret_cast<std::uintptr_t>(lowest) + std::min(kKept, size / 4);
}

int on_panic(lua_State* L) {
  const char* text = lua_tostring(L, -1);
  log::error("Lua failed outside of a protected call: {}", text ? text : "(no message)");
  std::abort();
}

}  // namespace

bool has_position(std::string_view message) {
  const std::size_t end = message.substr(0, message.find('\n')).find(": ");
  if (end == std::string_view::npos) {
    return false;
  }
  std::size_t start = end;
  while (start > 0 && std::isdigit(static_cast<unsigned char>(message[start - 1]))) {
    --start;
  }
  return start > 0 && start < end && message[start - 1] == ':';
}

/// Runs where the error was raised: completes the message and notes the frames.
int on_error(lua_State* L) {
  Runtime& runtime = Runtime::of(L);
  std::string message = message_text(L, 1);
  const bool passing = !runtime.passing_.empty() && message == runtime.passing_;  // traced when it left Lua the first time
  runtime.trace_.clear();
  lua_Debug ar;
  std::string position;
  std::string last;
  int repeated = 0;
  for (int level = 1; !passing && lua_getstack(L, level, &ar); ++level) {
    if (level == kInnerFrames) {
      if (const int outer = depth_of(L) - kOuterFrames; outer > level) {
        end_repetition(runtime.trace_, std::exchange(repeated, 0));
        if (static_cast<int>(runtime.trace_.size()) < kMaxTraceLines) {
          runtime.trace_.push_back(format("from {} calls that are left out", outer - level));
        }
        last.clear();
        level = outer - 1;
        continue;
      }
    }
    lua_getinfo(L, "nSl", &ar);
    message = with_full_path(std::move(message), ar);
    if (position.empty() && ar.currentline > 0) {
      position = format("{}:{}: ", shown_source(ar), ar.currentline);
    }
    const std::string frame = frame_text(ar);
    if (frame.empty()) {
      continue;
    }
    const std::string line = "from " + frame;
    if (line == last) {  // a recursion
      ++repeated;
      continue;
    }
    end_repetition(runtime.trace_, std::exchange(repeated, 0));
    if (static_cast<int>(runtime.trace_.size()) < kMaxTraceLines) {
      runtime.trace_.push_back(line);
    }
    last = line;
  }
  end_repetition(runtime.trace_, repeated);
  if (!passing && !has_position(message)) {
    message.insert(0, position);
  }
  if (runtime.trace_.size() == 1 && message.starts_with(position)) {
    runtime.trace_.clear();  // it would say the same again
  }
  lua_pushlstring(L, message.data(), message.size());
  return 1;
}

namespace {

/// "recipe.lua:12: " of the nearest Lua code that called: a tail call leaves no place of its own.
void push_place(lua_State* L) {
  for (int level = 1; level <= 4; ++level) {
    if (const std::string place = caller_position(L, level); !place.empty()) {
      push(L, place + ": ");
      return;
    }
  }
  push(L, std::string_view());
}

}  // namespace

void push_error(lua_State* L, const std::exception& error) {
  Runtime& runtime = Runtime::of(L);
  const auto* own = dynamic_cast<const Error*>(&error);
  const std::string whole = failure_text(error);
  std::string_view text = whole;
  text = text.substr(0, text.find("\nException raised from "));  // torch appends its own C++ stack
  if (own && own->code() == Code::script) {
    if (!runtime.thrown_.empty() && text.starts_with(runtime.thrown_)) {
      runtime.passing_ = text;  // it comes from an inner call, with its position and its traceback
    } else if (!has_position(text)) {
      push_place(L);
      lua_pushlstring(L, text.data(), text.size());
      lua_concat(L, 2);
      return;
    }
    lua_pushlstring(L, text.data(), text.size());
    return;
  }
  runtime.passed_ = {std::string(text), own ? own->code() : Code::other};
  push_place(L);
  lua_pushlstring(L, text.data(), text.size());
  lua_concat(L, 2);
}

Runtime::Runtime() : stack_end_(usable_stack_end()), main_(luaL_newstate()), current_(main_) {
  KF_CHECK(main_ != nullptr, Code::other, "Lua: not enough memory for a new state");
  lua_atpanic(main_, on_panic);
  lua_pushlightuserdata(main_, const_cast<char*>(&kRuntimeKey));
  lua_pushlightuserdata(main_, this);
  lua_rawset(main_, LUA_REGISTRYINDEX);
  lua_pushcfunction(main_, on_error);
  handler_ = luaL_ref(main_, LUA_REGISTRYINDEX);
}

Runtime::~Runtime() { lua_close(main_); }

std::shared_ptr<Runtime> Runtime::create() {
  std::shared_ptr<Runtime> runtime(new Runtime());  // the constructor is private: make_shared cannot reach it
  runtime->protect([](lua_State* L) { open_libraries(L); });
  return runtime;
}

Runtime& Runtime::of(lua_State* L) {
  lua_pushlightuserdata(L, const_cast<char*>(&kRuntimeKey));
  lua_rawget(L, LUA_REGISTRYINDEX);
  auto* runtime = static_cast<Runtime*>(lua_touserdata(L, -1));
  lua_pop(L, 1);
  return *runtime;
}

void Runtime::rethrow(lua_State* L, int handler) {
  std::size_t size = 0;
  const char* raw = lua_tolstring(L, -1, &size);
  std::string message = raw ? std::string(raw, size) : "Lua failed while handling an error";
  if (message == "not enough memory") {  // raised without a place
    message = "out of memory in Lua: a string or a table of the script did not fit";
  }
  lua_settop(L, handler - 1);
  const Passed passed = std::exchange(passed_, {});
  const std::vector<std::string> trace = std::exchange(trace_, {});
  // Unchanged by the script but for the position in front: the C++ error goes on as what it was.
  const bool unchanged = passed.code != Code::script && !passed.text.empty() && message.ends_with(passed.text) &&
                         (message.size() == passed.text.size() || has_position(message));
  Error error(unchanged ? passed.code : Code::script, unchanged ? passed.text : message);
  thrown_ = first_line(error.what());
  for (const std::string& frame : trace) {
    error.context(frame);
  }
  throw error;
}

void Runtime::fail_full_stack() {
  fail(Code::script,
       "stack overflow: Lua and the program call each other without an end, as a loss that asks for itself would; the last calls are named "
       "below");
}

void Runtime::protect_erased(void* self, void (*body)(void*, lua_State*)) {
  lua_State* L = current_;
  KF_CHECK(lua_checkstack(L, 4) != 0, Code::script, "Lua: stack overflow");
  ProtectedBody work{self, body};
  lua_pushcfunction(L, &guarded<run_protected>);
  lua_pushlightuserdata(L, &work);
  call(1, 0);
}

}  // namespace kf::lua
