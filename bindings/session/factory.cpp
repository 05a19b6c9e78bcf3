#include "bindings/session/factory.h"

#include <algorithm>
#include <vector>

#include "bindings/session/config_view.h"
#include "bindings/vm/stack.h"
#include "core/running.h"
#include "core/text.h"

namespace kf::lua {
namespace {

/// The parts whose factories run now, the outermost first: a part that asks for itself would go on until the stack is full.
class Making {
 public:
  explicit Making(const std::string& where) {
    names().push_back(where);
    if (names().size() > kMostNested) {
      const std::string message = circle();
      names().pop_back();
      fail(Code::script, "{}", message);
    }
  }
  ~Making() { names().pop_back(); }
  Making(const Making&) = delete;
  Making& operator=(const Making&) = delete;

 private:
  static constexpr std::size_t kMostNested = 16;

  static std::vector<std::string>& names() {
    static thread_local std::vector<std::string> made;
    return made;
  }

  /// "attention 'x'" of "recipe.lua:2: attention 'x'".
  static std::string short_name(const std::string& where) { return where.substr(where.rfind(": ") + 2); }

  /// Names the shortest end of the list that repeats.
  static std::string circle() {
    const std::vector<std::string>& all = names();
    for (std::size_t length = 1; 2 * length <= all.size(); ++length) {
      if (std::equal(all.rbegin(), all.rbegin() + static_cast<std::ptrdiff_t>(length),
                     all.rbegin() + static_cast<std::ptrdiff_t>(length))) {
        std::vector<std::string> chain;
        for (std::size_t i = all.size() - length - 1; i < all.size(); ++i) {
          chain.push_back(short_name(all[i]));
        }
        return format(
            "{} is built from itself: {}. What a factory makes with the job's own settings is what the job names: name another "
            "part, as in kf.nn.attention(a.config.model, { layer = a.layer, attention = \"gqa\" })",
            all.back(), join(chain, " asks for "));
      }
    }
    return format("{}: parts are nested {} deep in one another, from {} on; {} is the most", all.back(), all.size(),
                  short_name(all.front()), kMostNested);
  }
};

}  // namespace

std::string part_text(const std::string& kind, const config::PartInfo& info) { return format("{}: {} '{}'", info.origin, kind, info.name); }

void rethrow_from(const Error& error, const std::string& where, const std::string& line) {
  const std::string_view text = error.what();
  const bool bare = error.code() == Code::script && !has_position(error.what());
  const bool said = text.find("\n  " + line) != std::string_view::npos;  // of a circle once
  const bool circle = said && text.substr(0, text.find('\n')).find("stack overflow") != std::string_view::npos &&
                      text.find("runs itself") == std::string_view::npos;
  Error again(error.code(), circle ? format("{} runs itself without an end: {}", where, text)
                            : bare ? format("{}: {}", where, text)
                                   : error.what());
  throw said ? again : again.context(line);
}

std::shared_ptr<Ref> take_factory(lua_State* L, int index, const std::string& kind) {
  KF_CHECK(is_callable(L, index), Code::script, "kf.register.{}: expected a factory (a function), got {}", kind, describe(L, index));
  lua_pushvalue(L, index);
  return std::make_shared<Ref>(L);
}

Ref build(const Ref& factory, const std::string& where, const PartArgs& args, const std::function<void(lua_State*)>& fill,
          const std::string& wanted, bool (*fits)(lua_State*, int)) {
  const Making making(where);
  const Running running(where.c_str(), "its factory");
  Runtime& runtime = factory.runtime();
  lua_State* L = runtime.state();
  KF_CHECK(lua_checkstack(L, 8) != 0, Code::script, "Lua: stack overflow");
  const StackTop top(L);
  Ref arguments;
  runtime.protect([&](lua_State* state) {
    lua_createtable(state, 0, 4);
    push_view(state, job_tree(args.config), "config", 1);
    lua_setfield(state, -2, "config");
    push_view(state, args.options, "options", 0);
    lua_setfield(state, -2, "options");
    if (fill) {
      fill(state);
    }
    arguments = Ref(state);
  });
  factory.push(L);
  arguments.push(L);
  try {
    runtime.call(1, 1);
  } catch (const Error& error) {
    rethrow_from(error, where, format("in the factory of {}", where));
  }
  KF_CHECK(fits(L, -1), Code::script, "{} must return {}, got {}", where, wanted, describe(L, -1));
  return Ref(L);
}

}  // namespace kf::lua
