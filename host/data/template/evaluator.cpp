#include "data/template/evaluator.h"

#include <algorithm>
#include <map>
#include <optional>
#include <utility>

#include "core/error.h"
#include "data/template/functions.h"
#include "data/template/operators.h"

namespace kf::jinja {
namespace {

constexpr int kDeepest = 50;  // calls within calls: with the nesting of each a few MB of a thread's stack

enum class Flow { on, skip, leave };

/// Names of a scope: the template's own, a loop's turn, a macro's call.
using Scope = std::map<std::string, Value, std::less<>>;

class Evaluator {
 public:
  explicit Evaluator(const Dict& variables) : variables_(variables) { scopes_.emplace_back(); }

  Rendered run(const Block& block) {
    Rendered out;
    out_ = &out.text;
    generation_ = &out.generation;
    main_ = out_;
    run_block(block);
    return out;
  }

 private:
  // Statements.

  Flow run_block(const Block& block) {
    for (const auto& statement : block) {
      if (const Flow flow = run_statement(*statement); flow != Flow::on) {
        return flow;
      }
    }
    return Flow::on;
  }

  Flow run_statement(const Statement& statement) {
    using Kind = Statement::Kind;
    switch (statement.kind) {
      case Kind::data: put(Text(statement.text)); break;
      case Kind::print: put(at(statement.line, [&] { return printed(value_of(*statement.expr)); })); break;
      case Kind::condition: return run_block(value_of(*statement.expr).truth() ? statement.body : statement.otherwise);
      case Kind::loop: return run_loop(statement);
      case Kind::set: assign(statement, value_of(*statement.expr)); break;
      case Kind::set_block: {
        const Value text(captured(statement.body));
        assign(statement, statement.expr == nullptr ? text : filtered(*statement.expr, text));
        break;
      }
      case Kind::macro: scopes_.back()[statement.text] = macro(statement); break;
      case Kind::call_block: {
        const Value caller(Function{"caller", [this, &statement](const Arguments&) { return Value(captured(statement.body)); }});
        put(printed(call(*statement.expr, &caller)));
        break;
      }
      case Kind::filter_block: put(printed(filtered(*statement.expr, Value(captured(statement.body))))); break;
      case Kind::generation: return run_generation(statement);
      case Kind::skip: return Flow::skip;
      case Kind::leave: return Flow::leave;
    }
    return Flow::on;
  }

  void put(const Text& text) {
    KF_CHECK(out_->size() + text.size() < kMostText, Code::data, "the template makes a text of more than {} bytes", kMostText);
    out_->append(text);
  }

  /// What a block puts out.
  Text captured(const Block& block) {
    Text text;
    Text* const before = std::exchange(out_, &text);
    scopes_.emplace_back();
    run_block(block);
    scopes_.pop_back();
    out_ = before;
    return text;
  }

  Flow run_generation(const Statement& statement) {
    KF_CHECK(out_ == main_, Code::data, "line {}: {% generation %} within a macro or a set block is not known here", statement.line);
    const std::size_t begin = out_->size();
    const Flow flow = run_block(statement.body);
    if (out_->size() > begin) {
      generation_->push_back({begin, out_->size()});
    }
    return flow;
  }

  Flow run_loop(const Statement& statement) {
    List items = at(statement.line, [&] { return items_of(value_of(*statement.expr)); });
    if (statement.condition != nullptr) {
      List kept;
      for (const Value& item : items) {
        scopes_.emplace_back();
        bind(statement, item);
        if (value_of(*statement.condition).truth()) {
          kept.push_back(item);
        }
        scopes_.pop_back();
      }
      items = std::move(kept);
    }
    for (std::size_t i = 0; i < items.size(); ++i) {
      scopes_.emplace_back();
      scopes_.back()["loop"] = loop_state(items, i);
      bind(statement, items[i]);
      const Flow flow = run_block(statement.body);
      scopes_.pop_back();
      if (flow == Flow::leave) {
        break;
      }
    }
    return items.empty() ? run_block(statement.otherwise) : Flow::on;
  }

  static Value loop_state(const List& items, std::size_t i) {
    const auto size = static_cast<std::int64_t>(items.size());
    const auto at = static_cast<std::int64_t>(i);
    Dict out;
    out.put("index", Value(at + 1));
    out.put("index0", Value(at));
    out.put("revindex", Value(size - at));
    out.put("revindex0", Value(size - at - 1));
    out.put("first", Value(at == 0));
    out.put("last", Value(at + 1 == size));
    out.put("length", Value(size));
    out.put("previtem", i > 0 ? items[i - 1] : Value(Undefined{"loop.previtem"}));
    out.put("nextitem", i + 1 < items.size() ? items[i + 1] : Value(Undefined{"loop.nextitem"}));
    return out;
  }

  void bind(const Statement& statement, const Value& item) {
    if (statement.names.size() == 1) {
      scopes_.back()[statement.names[0]] = item;
      return;
    }
    const List parts = at(statement.line, [&] { return items_of(item); });
    KF_CHECK(parts.size() == statement.names.size(), Code::data, "line {}: {} names for {} values", statement.line, statement.names.size(),
             parts.size());
    for (std::size_t i = 0; i < parts.size(); ++i) {
      scopes_.back()[statement.names[i]] = parts[i];
    }
  }

  void assign(const Statement& statement, const Value& value) {
    const std::string& name = statement.names.back();
    const std::size_t dot = name.find('.');
    if (dot == std::string::npos) {
      bind(statement, value);
      return;
    }
    Value space = look_up(name.substr(0, dot));
    KF_CHECK(space.dict() != nullptr && !space.dict()->fixed, Code::data, "line {}: {} is no namespace(), so {} cannot be set",
             statement.line, name.substr(0, dot), name);
    space.dict()->put(name.substr(dot + 1), value);
  }

  // Calls.

  Value macro(const Statement& statement) {
    return Function{statement.text, [this, &statement](const Arguments& arguments) { return Value(run_macro(statement, arguments)); }};
  }

  Text run_macro(const Statement& statement, const Arguments& arguments) {
    KF_CHECK(++depth_ <= kDeepest, Code::data, "line {}: macros call each other more than {} deep", statement.line, kDeepest);
    KF_CHECK(arguments.values.size() <= statement.names.size(), Code::data, "line {}: {} takes {} arguments, not {}", statement.line,
             statement.text, statement.names.size(), arguments.values.size());
    Scope scope;
    for (std::size_t i = 0; i < statement.names.size(); ++i) {
      const Value* const given = arguments.find(i, statement.names[i]);
      const std::size_t without = statement.names.size() - statement.defaults.size();
      scope[statement.names[i]] = given != nullptr ? *given
                                  : i >= without   ? value_of(*statement.defaults[i - without])
                                                   : Value(Undefined{statement.names[i]});
    }
    if (const Value* const caller = arguments.find(statement.names.size(), "caller")) {
      scope["caller"] = *caller;
    }
    std::vector<Scope> outside;  // a macro sees the template's own names, and none of where it is called
    outside.push_back(scopes_.front());
    outside.push_back(std::move(scope));
    std::swap(outside, scopes_);
    Text out = captured(statement.body);
    std::swap(outside, scopes_);
    --depth_;
    return out;
  }

  Value call(const Expr& expr, const Value* caller = nullptr) {
    const Value function = value_of(*expr.parts[0]);
    KF_CHECK(function.function() != nullptr, Code::data, "line {}: {} cannot be called{}", expr.line, described(*expr.parts[0], function),
             expr.parts[0]->text == "strftime_now" ? "; a date would make other ids every day: give it by data.chat_template_args" : "");
    Arguments arguments = arguments_of(expr);
    if (caller != nullptr) {
      arguments.named.emplace_back("caller", *caller);
    }
    return at(expr.line, [&] { return function.function()->call(arguments); });
  }

  Arguments arguments_of(const Expr& expr) {
    Arguments out;
    for (std::size_t i = 1; i < expr.parts.size(); ++i) {
      out.values.push_back(value_of(*expr.parts[i]));
    }
    for (const auto& [name, part] : expr.named) {
      out.named.emplace_back(name, value_of(*part));
    }
    return out;
  }

  /// The filters of a block's head, the innermost of which has no value of its own.
  Value filtered(const Expr& expr, const Value& value) {
    const Value input = expr.parts[0] == nullptr ? value : filtered(*expr.parts[0], value);
    return at(expr.line, [&] { return apply_filter(expr.text, input, arguments_of(expr)); });
  }

  // Expressions.

  /// Adds the line to what `body` throws.
  template <class F>
  auto at(int line, F body) -> decltype(body()) {
    try {
      return body();
    } catch (const Error& error) {
      if (std::string_view(error.what()).starts_with("line ")) {
        throw;
      }
      throw Error(error.code(), format("line {}: {}", line, error.what()));
    }
  }

  static std::string described(const Expr& expr, const Value& value) {
    const bool named = expr.kind == Expr::Kind::name || expr.kind == Expr::Kind::attribute;
    return named ? format("{} ({})", expr.text, value.kind()) : value.kind();
  }

  Value look_up(std::string_view name) const {
    for (auto scope = scopes_.rbegin(); scope != scopes_.rend(); ++scope) {
      if (const auto found = scope->find(name); found != scope->end()) {
        return found->second;
      }
    }
    if (const Value* const found = variables_.find(name)) {
      return *found;
    }
    const Value* const function = global_function(name);
    return function != nullptr ? *function : Value(Undefined{std::string(name)});
  }

  Value value_of(const Expr& expr) {
    using Kind = Expr::Kind;
    switch (expr.kind) {
      case Kind::literal: return expr.value;
      case Kind::name: return look_up(expr.text);
      case Kind::list: {
        List out;
        for (const ExprPtr& part : expr.parts) {
          out.push_back(value_of(*part));
        }
        return out;
      }
      case Kind::dict: return dict_of(expr);
      case Kind::attribute: return attribute_of(expr);
      case Kind::item: return item_of(expr);
      case Kind::slice: return slice_of(expr);
      case Kind::call: return call(expr);
      case Kind::filter: {
        const Value value = value_of(*expr.parts[0]);
        return at(expr.line, [&] { return apply_filter(expr.text, value, arguments_of(expr)); });
      }
      case Kind::test: {
        const Value value = value_of(*expr.parts[0]);
        return at(expr.line, [&] { return Value(apply_test(expr.text, value, arguments_of(expr))); });
      }
      case Kind::unary: return unary(expr);
      case Kind::binary: return binary(expr);
      case Kind::compare: return comparison(expr);
      case Kind::conditional:
        if (value_of(*expr.parts[1]).truth()) {
          return value_of(*expr.parts[0]);
        }
        return expr.parts[2] == nullptr ? Value(Undefined{"an if without else"}) : value_of(*expr.parts[2]);
    }
    return {};
  }

  Value dict_of(const Expr& expr) {
    Dict out;
    for (std::size_t i = 0; i + 1 < expr.parts.size(); i += 2) {
      out.set(value_of(*expr.parts[i]), value_of(*expr.parts[i + 1]));
    }
    return out;
  }

  void check_defined(const Expr& expr, const Value& object) const {
    KF_CHECK(!object.is_undefined(), Code::data, "line {}: {} is undefined", expr.line, kf::quoted(object.undefined()->name));
  }

  /// object.name: of a dict a method first, as Python's getattr, then the item.
  Value attribute_of(const Expr& expr) {
    const Value object = value_of(*expr.parts[0]);
    check_defined(expr, object);
    if (object.dict() != nullptr && !object.dict()->fixed) {
      const Value* const held = object.dict()->find(expr.text);
      return held != nullptr ? *held : Value(Undefined{expr.text});
    }
    Value method = method_of(object, expr.text);
    if (!method.is_undefined()) {
      return method;
    }
    const Value* const found = object.dict() == nullptr ? nullptr : object.dict()->find(expr.text);
    return found != nullptr ? *found : Value(Undefined{expr.text});
  }

  Value item_of(const Expr& expr) {
    const Value object = value_of(*expr.parts[0]);
    check_defined(expr, object);
    const Value key = value_of(*expr.parts[1]);
    if (object.dict() != nullptr) {
      const Value* const found = object.dict()->at(key);
      return found != nullptr        ? *found
             : key.text() != nullptr ? method_of(object, key.text()->bytes)
                                     : Value(Undefined{printed(key).bytes});
    }
    std::int64_t room = 0;
    const std::int64_t* const index = key.whole(room);
    if (index == nullptr || (object.list() == nullptr && object.text() == nullptr)) {
      return Undefined{printed(key).bytes};
    }
    const List items = items_of(object);
    const std::int64_t place = *index < 0 ? *index + static_cast<std::int64_t>(items.size()) : *index;
    const bool there = place >= 0 && place < static_cast<std::int64_t>(items.size());
    return there ? items[static_cast<std::size_t>(place)] : Value(Undefined{"item " + std::to_string(*index)});
  }

  /// As Python slices lists and strings.
  Value slice_of(const Expr& expr) {
    const Value object = value_of(*expr.parts[0]);
    check_defined(expr, object);
    const List items = at(expr.line, [&] { return items_of(object); });
    const auto size = static_cast<std::int64_t>(items.size());
    const auto number = [&](std::size_t i) -> std::optional<std::int64_t> {
      const Value value = expr.parts[i] == nullptr ? Value(None{}) : value_of(*expr.parts[i]);
      std::int64_t room = 0;
      KF_CHECK(value.is_none() || value.whole(room) != nullptr, Code::data, "line {}: a slice by {}", expr.line, value.kind());
      return value.is_none() ? std::nullopt : std::optional(*value.whole(room));
    };
    const std::int64_t step = number(3).value_or(1);
    KF_CHECK(step != 0, Code::data, "line {}: a slice with a step of 0", expr.line);
    const auto place = [&](std::optional<std::int64_t> wanted, std::int64_t fallback) {
      const std::int64_t low = step > 0 ? 0 : -1;
      const std::int64_t value = !wanted ? fallback : *wanted < 0 ? *wanted + size : *wanted;
      return std::clamp(value, low, step > 0 ? size : size - 1);
    };
    const std::int64_t begin = place(number(1), step > 0 ? 0 : size - 1);
    const std::int64_t end = number(2) ? place(number(2), 0) : step > 0 ? size : -1;
    List out;
    for (std::int64_t i = begin; step > 0 ? i < end : i > end; i += step) {
      out.push_back(items[static_cast<std::size_t>(i)]);
    }
    return object.text() != nullptr ? Value(joined(out, {})) : Value(std::move(out));
  }

  Value unary(const Expr& expr) {
    const Value value = value_of(*expr.parts[0]);
    if (expr.text == "not") {
      return !value.truth();
    }
    KF_CHECK(value.is_number(), Code::data, "line {}: {} before {}", expr.line, expr.text, value.kind());
    std::int64_t room = 0;
    if (const std::int64_t* const whole = value.whole(room)) {
      return expr.text == "-" ? at(expr.line, [&] { return arithmetic(Value(std::int64_t{0}), "-", value); }) : Value(*whole);
    }
    return expr.text == "-" ? -value.number() : value.number();
  }

  Value binary(const Expr& expr) {
    const Value a = value_of(*expr.parts[0]);
    if (expr.text == "and") {
      return a.truth() ? value_of(*expr.parts[1]) : a;
    }
    if (expr.text == "or") {
      return a.truth() ? a : value_of(*expr.parts[1]);
    }
    const Value b = value_of(*expr.parts[1]);
    if (expr.text == "~") {
      Text out = printed(a);
      out.append(printed(b));
      return out;
    }
    if (expr.text == "+" && a.text() != nullptr && b.text() != nullptr) {
      Text out = *a.text();
      out.append(*b.text());
      return out;
    }
    if (expr.text == "+" && a.list() != nullptr && b.list() != nullptr) {
      List out = *a.list();
      out.insert(out.end(), b.list()->begin(), b.list()->end());
      return out;
    }
    if (expr.text == "*" && (a.text() != nullptr || b.text() != nullptr)) {
      return at(expr.line, [&] { return repeated(a.text() != nullptr ? a : b, a.text() != nullptr ? b : a); });
    }
    KF_CHECK(a.is_number() && b.is_number(), Code::data, "line {}: {} {} {}", expr.line, described(*expr.parts[0], a), expr.text,
             described(*expr.parts[1], b));
    return at(expr.line, [&] { return arithmetic(a, expr.text, b); });
  }

  Value comparison(const Expr& expr) {
    Value left = value_of(*expr.parts[0]);
    for (std::size_t i = 0; i < expr.words.size(); ++i) {
      Value right = value_of(*expr.parts[i + 1]);
      if (!at(expr.line, [&] { return holds(left, expr.words[i], right); })) {
        return false;
      }
      left = std::move(right);
    }
    return true;
  }

  const Dict& variables_;
  std::vector<Scope> scopes_;
  Text* out_ = nullptr;
  Text* main_ = nullptr;  // of the template as a whole
  std::vector<ByteRange>* generation_ = nullptr;
  int depth_ = 0;
};

}  // namespace

Rendered evaluate(const Block& block, const Dict& variables) { return Evaluator(variables).run(block); }

}  // namespace kf::jinja
