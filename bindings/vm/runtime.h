#pragma once
// One lua_State with its libraries, its `require`, and calls that turn script errors into Error{Code::script}.

#include <lua.hpp>

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/error.h"
#include "core/fs.h"

namespace kf::lua {

/// A piece of Lua shipped inside the binary (generated from lua/kf/*.lua).
struct ShippedModule {
  std::string_view name;  // "kf.hooks.loss_spike"
  std::string_view source;
};
extern const ShippedModule kShippedModules[];
extern const std::size_t kShippedModuleCount;

/// Owns the lua_State. Values kept in C++ (Ref) share it, so it closes when the last of them is gone. One thread only.
class Runtime : public std::enable_shared_from_this<Runtime> {
 public:
  static std::shared_ptr<Runtime> create();
  ~Runtime();
  Runtime(const Runtime&) = delete;
  Runtime& operator=(const Runtime&) = delete;

  /// The runtime that `L` (any coroutine of it) belongs to.
  static Runtime& of(lua_State* L);

  /// The state of the coroutine that runs now: callbacks must use it, not the one that registered them.
  lua_State* state() const { return current_; }

  /// Where `require` looks after the shipped modules: the script's folder, then KF_LUA_PATH (folders or ?-templates between ';').
  void set_search_path(const fs::path& script_folder);

  /// Files that stand in where what `require` (a module's name), dofile or loadfile ("file PATH") asks for is not found.
  void set_copies(const std::map<std::string, fs::path>& copies);

  /// What `require` (by the module's name), dofile and loadfile (as "file PATH") have read: name to path, sorted.
  std::map<std::string, fs::path> loaded_files() const;

  /// Leaves the compiled chunk of `path` on the stack. Messages call the file `shown`.
  void load_file(const fs::path& path, const std::string& shown);

  /// Calls the function below its `arguments` on the stack, as lua_call does. A failure is thrown: `recipe.lua:12: message`, then the
  /// traceback as context. An Error that C++ code raised below the script keeps its code.
  void call(int arguments, int results) {
    lua_State* L = current_;
    if (stack_is_full()) [[unlikely]] {
      fail_full_stack();
    }
    ++calls_;
    const int handler = lua_gettop(L) - arguments;
    lua_rawgeti(L, LUA_REGISTRYINDEX, handler_);
    lua_insert(L, handler);
    if (lua_pcall(L, arguments, results, handler) != 0) [[unlikely]] {
      rethrow(L, handler);
    }
    lua_remove(L, handler);
  }

  /// Whether the thread's stack has no room for a further call into Lua.
  bool stack_is_full() const { return reinterpret_cast<std::uintptr_t>(__builtin_frame_address(0)) < stack_end_; }

  /// How many calls there were so far.
  std::uint64_t calls() const { return calls_; }

  /// Runs C++ code that may raise Lua errors (building tables, reading fields) as a protected call.
  template <class F>
  void protect(F&& body) {
    protect_erased(&body, [](void* self, lua_State* L) { (*static_cast<std::remove_reference_t<F>*>(self))(L); });
  }

 private:
  friend class Crossing;
  friend void push_error(lua_State* L, const std::exception& error);
  friend int on_error(lua_State* L);

  /// The last C++ error that passed into Lua, to know it again when it comes out.
  struct Passed {
    std::string text;
    Code code = Code::script;
  };

  Runtime();
  static void open_libraries(lua_State* L);
  void protect_erased(void* self, void (*body)(void*, lua_State*));
  [[noreturn]] void rethrow(lua_State* L, int handler);
  [[noreturn]] static void fail_full_stack();

  std::uintptr_t stack_end_ = 0;  // calls from C++ into Lua end there, before the thread's stack does
  lua_State* main_ = nullptr;
  lua_State* current_ = nullptr;
  int handler_ = LUA_NOREF;
  std::uint64_t calls_ = 0;
  Passed passed_;
  std::string thrown_;              // first line of the last error that left Lua, so that an outer script does not locate it again
  std::string passing_;             // the whole of it, while it passes through that outer script
  std::vector<std::string> trace_;  // of the error in flight
};

/// Whether `message` starts as errors with a position do: `anything:12: `.
bool has_position(std::string_view message);

/// While one exists, callbacks run on `L`. For bound functions from which callbacks may happen (kf.run, ctx:generate).
class Crossing {
 public:
  explicit Crossing(lua_State* L) : runtime_(Runtime::of(L)), before_(std::exchange(runtime_.current_, L)) {}
  ~Crossing() { runtime_.current_ = before_; }
  Crossing(const Crossing&) = delete;
  Crossing& operator=(const Crossing&) = delete;

 private:
  Runtime& runtime_;
  lua_State* before_;
};

/// Restores the height of the stack.
class StackTop {
 public:
  explicit StackTop(lua_State* L) : L_(L), top_(lua_gettop(L)) {}
  ~StackTop() { lua_settop(L_, top_); }
  StackTop(const StackTop&) = delete;
  StackTop& operator=(const StackTop&) = delete;

 private:
  lua_State* L_;
  int top_;
};

/// A Lua value kept alive by C++.
class Ref {
 public:
  Ref() = default;
  /// Takes the value on top of `L`'s stack.
  explicit Ref(lua_State* L) : runtime_(Runtime::of(L).shared_from_this()), ref_(luaL_ref(L, LUA_REGISTRYINDEX)) {}
  ~Ref() { reset(); }
  Ref(Ref&& other) noexcept : runtime_(std::move(other.runtime_)), ref_(std::exchange(other.ref_, LUA_NOREF)) {}
  Ref& operator=(Ref&& other) noexcept {
    if (this != &other) {
      reset();
      runtime_ = std::move(other.runtime_);
      ref_ = std::exchange(other.ref_, LUA_NOREF);
    }
    return *this;
  }

  explicit operator bool() const { return runtime_ != nullptr; }
  void push(lua_State* L) const { lua_rawgeti(L, LUA_REGISTRYINDEX, ref_); }
  Runtime& runtime() const { return *runtime_; }

 private:
  void reset() {
    if (runtime_) {
      luaL_unref(runtime_->state(), LUA_REGISTRYINDEX, ref_);
      runtime_.reset();
    }
  }

  std::shared_ptr<Runtime> runtime_;
  int ref_ = LUA_NOREF;
};

}  // namespace kf::lua
