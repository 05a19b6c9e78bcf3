#include "bindings/tensor/operators.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <map>
#include <memory>
#include <optional>
#include <utility>

#include "bindings/tensor/arguments.h"
#include "bindings/tensor/numbers.h"
#include "bindings/tensor/tensor.h"
#include "bindings/vm/guard.h"
#include "bindings/vm/runtime.h"
#include "bindings/vm/stack.h"
#include "core/error.h"
#include "core/out_of_memory.h"

namespace kf::lua {
namespace {

constexpr std::string_view kNamespace = "aten::";

/// Overload names by operator; the dispatcher's table is walked once, at the first use.
const std::map<std::string, std::vector<std::string>>& catalog() {
  static const auto all = [] {
    std::map<std::string, std::vector<std::string>> out;
    for (const c10::OperatorName& name : c10::Dispatcher::singleton().getAllOpNames()) {
      if (name.name.starts_with(kNamespace) && c10::Dispatcher::singleton().findSchema(name)) {
        out[name.name.substr(kNamespace.size())].push_back(name.overload_name);
      }
    }
    for (auto& [name, overloads] : out) {
      std::sort(overloads.begin(), overloads.end());
    }
    return out;
  }();
  return all;
}

bool takes_out(const Signature& signature) {
  return std::any_of(signature.parameters.begin(), signature.parameters.end(), [](const Slot& slot) { return slot.out; });
}

std::unique_ptr<Operator> make_operator(const std::string& name, const std::vector<std::string>& overloads) {
  auto op = std::make_unique<Operator>();
  op->name = name;
  for (const std::string& overload : overloads) {
    Signature signature(c10::Dispatcher::singleton().findSchemaOrThrow((std::string(kNamespace) + name).c_str(), overload.c_str()));
    const bool tensor_first = !signature.parameters.empty() && signature.parameters[0].type.kind == Kind::tensor &&
                              !signature.parameters[0].type.list && !signature.parameters[0].keyword_only;
    op->method = op->method || tensor_first;
    op->overloads.push_back(std::move(signature));
  }
  std::stable_sort(op->overloads.begin(), op->overloads.end(),
                   [](const Signature& a, const Signature& b) { return takes_out(a) < takes_out(b); });
  return op;
}

std::string values_text(lua_State* L, const CallArguments& call) {
  std::vector<std::string> words;
  for (const Value& value : call.places) {
    words.push_back(describe_any(L, value.index));
  }
  for (const Keyword& keyword : call.keywords) {
    words.push_back(std::string(keyword.name) + " = " + describe_any(L, keyword.value.index));
  }
  return words.empty() ? "nothing" : join(words, ", ");
}

[[noreturn]] void fail_to_fit(lua_State* L, const Operator& op, const CallArguments& call) {
  std::vector<std::string> lines;
  std::string why;
  std::size_t callable = 0;
  for (const Signature& signature : op.overloads) {
    if (signature.missing.empty() && (!takes_out(signature) || op.overloads.size() == 1)) {
      Fit tried;
      fit(L, signature, call, tried, &why);
      lines.push_back(signature.text());
      ++callable;
    }
  }
  if (callable == 1) {
    fail(Code::script, "{}: {}\n  it is {}", op.name, why, lines[0]);
  }
  if (callable == 0) {
    fail(Code::script, "{}: {}", op.name, op.overloads[0].missing.empty() ? "it has out variants only" : op.overloads[0].missing);
  }
  fail(Code::script, "{}: no overload takes ({}); there are\n  {}", op.name, values_text(L, call), join(lines, "\n  "));
}

const Signature& choose(lua_State* L, const Operator& op, const CallArguments& call, Fit& best) {
  const Signature* chosen = nullptr;
  Fit tried;
  for (const Signature& signature : op.overloads) {
    if (!signature.missing.empty()) {
      continue;
    }
    fit(L, signature, call, tried);
    if (tried.cost >= 0 && (chosen == nullptr || tried.cost < best.cost)) {
      chosen = &signature;
      std::swap(best, tried);
      if (best.cost == 0) {
        break;
      }
    }
  }
  if (chosen == nullptr) {
    fail_to_fit(L, op, call);
  }
  return *chosen;
}

/// LibTorch's message without its C++ stack, with the operator and its arguments.
[[noreturn]] void fail_in_torch(lua_State* L, const Operator& op, const CallArguments& call, const c10::Error& error) {
  std::string text = error.what_without_backtrace();
  if (std::string memory = memory_failure_text(text); !memory.empty()) {
    text = std::move(memory);
  }
  text = text.substr(0, text.find("\nException raised from "));
  while (!text.empty() && text.back() == '\n') {
    text.pop_back();
  }
  fail(Code::script, "{}: {}\n  given {}", op.name, text, values_text(L, call));
}

/// Buffers of a call, reused by the next; a call inside a call (a Lua hook in backward) makes its own.
struct Buffers {
  CallArguments call;
  Fit fit;
  std::vector<c10::IValue> stack;
};

class BorrowedBuffers {
 public:
  BorrowedBuffers() : buffers_(spare() ? std::move(spare()) : std::make_unique<Buffers>()) {}
  ~BorrowedBuffers() {
    buffers_->stack.clear();
    spare() = std::move(buffers_);
  }
  BorrowedBuffers(const BorrowedBuffers&) = delete;
  BorrowedBuffers& operator=(const BorrowedBuffers&) = delete;
  Buffers& operator*() { return *buffers_; }

 private:
  static std::unique_ptr<Buffers>& spare() {
    thread_local std::unique_ptr<Buffers> kept;
    return kept;
  }
  std::unique_ptr<Buffers> buffers_;
};

/// In-place operators give back their first argument: the userdata itself, not a second one for the same tensor.
bool is_first_argument(lua_State* L, const CallArguments& call, const c10::IValue& value) {
  if (!value.isTensor() || call.places.empty() || call.places[0].type != Value::Type::tensor) {
    return false;
  }
  return box_at(L, call.places[0].index)->tensor.is_same(value.toTensor());
}

int push_results(lua_State* L, const Signature& signature, const CallArguments& call, const std::vector<c10::IValue>& stack) {
  luaL_checkstack(L, static_cast<int>(stack.size()) + 4, "too many results");
  for (std::size_t i = 0; i < stack.size(); ++i) {
    if (is_first_argument(L, call, stack[i])) {
      lua_pushvalue(L, call.places[0].index);
    } else {
      push_result(L, stack[i], i < signature.results.size() ? signature.results[i] : ArgumentType{},
                  i < signature.fresh.size() && signature.fresh[i]);
    }
  }
  return static_cast<int>(stack.size());
}

int run_operator(lua_State* L) { return call_operator(L, *static_cast<const Operator*>(lua_touserdata(L, lua_upvalueindex(1))), 1); }

// --- kf.op ---

const Operator& operator_or_fail(lua_State* L, const std::string& name, const char* where) {
  const Operator* op = find_operator(name);
  if (op == nullptr) {
    if (has_method(L, name)) {
      fail(Code::script, "{} has no operator '{}'; it is a method: t:{}(...)", where, name, name);
    }
    fail(Code::script, "{} has no operator '{}'{}", where, name, suggestion_of(name, operator_names()));
  }
  return *op;
}

/// kf.op[name]: the function, kept in the table for the next time.
int op_index(lua_State* L) {
  const std::string name = check_text(L, 2, "kf.op", "an operator's name");
  push_operator(L, operator_or_fail(L, name, "kf.op"));
  lua_pushvalue(L, 2);
  lua_pushvalue(L, -2);
  lua_rawset(L, 1);
  return 1;
}

int op_newindex(lua_State* L) { fail(Code::script, "kf.op is read-only, got an assignment to {}", describe(L, 2)); }

/// kf.op.help(name): prints the signatures; returns them as text, too.
int op_help(lua_State* L) {
  const std::string name = check_text(L, 1, "kf.op.help", "an operator's name");
  const Operator& op = operator_or_fail(L, name, "kf.op");
  std::string text;
  for (const Signature& signature : op.overloads) {
    text += signature.text() + (signature.missing.empty() ? "\n" : "   -- not from Lua: " + signature.missing + "\n");
  }
  lua_getglobal(L, "print");
  push(L, std::string_view(text).substr(0, text.size() - 1));
  lua_call(L, 1, 0);
  push(L, std::string_view(text));
  return 1;
}

/// kf.op.missing() -> { { name = "...", reason = "..." }, ... }, and the number of all schemas.
int op_missing(lua_State* L) {
  lua_newtable(L);
  int number = 0;
  std::size_t all = 0;
  for (const std::string& name : operator_names()) {
    const Operator& op = *find_operator(name);
    all += op.overloads.size();
    for (const Signature& signature : op.overloads) {
      if (!signature.missing.empty()) {
        lua_createtable(L, 0, 2);
        set(L, "name", std::string_view(signature.overload.empty() ? name : name + "." + signature.overload));
        set(L, "reason", std::string_view(signature.missing));
        lua_rawseti(L, -2, ++number);
      }
    }
  }
  lua_pushnumber(L, static_cast<double>(all));
  return 2;
}

/// kf.op.list() -> all names.
int op_list(lua_State* L) {
  lua_newtable(L);
  int number = 0;
  for (const std::string& name : operator_names()) {
    push(L, std::string_view(name));
    lua_rawseti(L, -2, ++number);
  }
  return 1;
}

}  // namespace

std::string suggestion_of(const std::string& word, const std::vector<std::string>& names) {
  // kf.op.cross_entropy: a whole word of the name is nearer than a name of like length
  const auto begins = std::find_if(names.begin(), names.end(), [&](const std::string& name) { return name.starts_with(word + "_"); });
  const std::string near = begins != names.end() ? *begins : nearest(word, names);
  return near.empty() ? "; kf.op.list() has them all" : "; did you mean '" + near + "'?";
}

const Operator* find_operator(const std::string& name) {
  static std::map<std::string, std::unique_ptr<Operator>> known;  // the dispatcher's table never shrinks
  const auto cached = known.find(name);
  if (cached != known.end()) {
    return cached->second.get();
  }
  const auto whole = catalog().find(name);
  if (whole != catalog().end()) {
    return known.emplace(name, make_operator(name, whole->second)).first->second.get();
  }
  const std::size_t dot = name.find('.');
  const auto base = dot == std::string::npos ? catalog().end() : catalog().find(name.substr(0, dot));
  if (base == catalog().end()) {
    return nullptr;
  }
  const std::string overload = name.substr(dot + 1);
  if (std::find(base->second.begin(), base->second.end(), overload) == base->second.end()) {
    return nullptr;
  }
  return known.emplace(name, make_operator(base->first, {overload})).first->second.get();
}

const std::vector<std::string>& operator_names() {
  static const auto names = [] {
    std::vector<std::string> out;
    for (const auto& [name, overloads] : catalog()) {
      out.push_back(name);
    }
    return out;
  }();
  return names;
}

namespace {

/// Of operators that write a number into an int64 tensor: see check_int64.
void check_scalars(const Operator& op, const Signature& signature, const std::vector<c10::IValue>& stack) {
  bool edge = false;
  bool int64 = false;
  bool typed = false;
  const bool writes = op.name.find("fill") != std::string::npos || op.name.find("full") != std::string::npos ||
                      op.name.find("scatter") != std::string::npos || op.name.find("put") != std::string::npos;
  for (std::size_t i = 0; i < stack.size(); ++i) {
    edge = edge || (stack[i].isDouble() && stack[i].toDouble() == 0x1p63);
    if (signature.parameters[i].name == std::string_view("dtype") && stack[i].isInt()) {
      typed = true;
      int64 = stack[i].toInt() == static_cast<std::int64_t>(at::kLong);
    } else if (!typed && writes && i == 0 && stack[i].isTensor()) {
      int64 = stack[i].toTensor().defined() && stack[i].toTensor().scalar_type() == at::kLong;
    }
  }
  if (edge && int64) {
    check_int64(0x1p63, op.name);
  }
}

/// Reads everything, chooses among all overloads unless `plan` says which, and calls boxed. Keeps the choice under `key`.
int call_boxed(lua_State* L, const Operator& op, int first, std::uint32_t key, const PlainCall& plain, const CallPlan* plan) {
  BorrowedBuffers borrowed;
  Buffers& buffers = *borrowed;
  buffers.call.read(L, first);
  const Signature& signature = plan != nullptr ? *plan->signature : choose(L, op, buffers.call, buffers.fit);
  const Fit& fit = plan != nullptr ? plan->fit : buffers.fit;
  if (plan == nullptr && key != PlainCall::kOther) {
    op.plans.add({key, {plain.names.begin(), plain.names.begin() + plain.keywords}, &signature, fit, make_fast(signature, plain, fit)});
  }
  buffers.stack.clear();
  convert(L, signature, buffers.call, fit, buffers.stack);
  if (plain.edge || key == PlainCall::kOther) {  // what is not plain was not read to its end
    check_scalars(op, signature, buffers.stack);
  }
  try {
    signature.handle.callBoxed(&buffers.stack);
  } catch (const c10::Error& error) {
    fail_in_torch(L, op, buffers.call, error);
  }
  return push_results(L, signature, buffers.call, buffers.stack);
}

}  // namespace

int call_operator(lua_State* L, const Operator& op, int first) {
  PlainCall plain;
  const std::uint32_t key = plain.read(L, first);
  const CallPlan* plan = key != PlainCall::kOther ? op.plans.find(key, plain) : nullptr;
  if (plan == nullptr || plan->fast == nullptr || plain.edge) {
    return call_boxed(L, op, first, key, plain, plan);
  }
  try {
    return plan->fast->run(L, plain, first);
  } catch (const c10::Error& error) {
    CallArguments call;
    call.read(L, first);
    fail_in_torch(L, op, call, error);
  }
}

void push_operator(lua_State* L, const Operator& op) {
  lua_pushlightuserdata(L, const_cast<Operator*>(&op));
  lua_pushcclosure(L, &guarded<run_operator>, 1);
}

void push_operators(lua_State* L) {
  lua_newtable(L);
  const luaL_Reg functions[] = {
      {"help", &guarded<op_help>}, {"missing", &guarded<op_missing>}, {"list", &guarded<op_list>}, {nullptr, nullptr}};
  luaL_register(L, nullptr, functions);
  lua_newtable(L);
  lua_pushcfunction(L, &guarded<op_index>);
  lua_setfield(L, -2, "__index");
  lua_pushcfunction(L, &guarded<op_newindex>);
  lua_setfield(L, -2, "__newindex");
  lua_setmetatable(L, -2);
}

}  // namespace kf::lua
