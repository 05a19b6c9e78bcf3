#include "data/template/parser.h"

#include "data/template/expression_parser.h"
#include "data/template/functions.h"

namespace kf::jinja {
namespace {

class Parser : private ExpressionParser {
 public:
  using ExpressionParser::ExpressionParser;

  Parsed run() {
    Parsed out;
    out.block = parse_block({});
    out.generation = generation_;
    return out;
  }

 private:
  using ExpressionParser::make;
  std::unique_ptr<Statement> make(Statement::Kind kind) const {
    auto out = std::make_unique<Statement>();
    out->kind = kind;
    out->line = now().line;
    return out;
  }

  /// Up to a tag whose word is in `ends`, which stays; without any, up to the end of the template.
  Block parse_block(const std::vector<std::string_view>& ends) {
    const Deeper deeper(*this);
    Block out;
    for (;;) {
      if (now().kind == Kind::end) {
        if (!ends.empty()) {
          wrong(format("the template ends before {% {} %}", ends.back()));
        }
        return out;
      }
      if (now().kind == Kind::data) {
        out.push_back(make(Statement::Kind::data));
        out.back()->text = take().text;
      } else if (now().kind == Kind::print_begin) {
        take();
        out.push_back(make(Statement::Kind::print));
        out.back()->expr = parse_tuple();
        expect(Kind::print_end, "}}");
      } else {
        const Token& word = next();
        if (word.kind == Kind::name && std::find(ends.begin(), ends.end(), word.text) != ends.end()) {
          return out;
        }
        take();
        out.push_back(parse_tag());
      }
    }
  }

  /// {% word %} behind a block.
  void close(std::string_view word) {
    expect(Kind::block_begin, "{%");
    expect(word);
    expect(Kind::block_end, "%}");
  }

  std::unique_ptr<Statement> parse_tag() {
    const int line = now().line;
    const std::string word = expect_name();
    std::unique_ptr<Statement> out;
    if (word == "if") {
      out = parse_if();
    } else if (word == "for") {
      out = parse_for();
    } else if (word == "set") {
      out = parse_set();
    } else if (word == "macro") {
      out = parse_macro();
    } else if (word == "call") {
      out = parse_enclosed(Statement::Kind::call_block, "endcall");
    } else if (word == "filter") {
      out = parse_enclosed(Statement::Kind::filter_block, "endfilter");
    } else if (word == "generation") {
      generation_ = true;
      out = parse_enclosed(Statement::Kind::generation, "endgeneration");
    } else if (word == "break" || word == "continue") {
      out = make(word == "break" ? Statement::Kind::leave : Statement::Kind::skip);
      if (loops_ == 0) {
        wrong(format("{% {} %} outside of a loop", word));
      }
      expect(Kind::block_end, "%}");
    } else {
      wrong(format("{% {} %} is not known here; there are if, for, set, macro, call, filter, generation, break, continue", word));
    }
    out->line = line;
    return out;
  }

  std::unique_ptr<Statement> parse_if() {
    auto out = make(Statement::Kind::condition);
    out->expr = parse_expression();
    expect(Kind::block_end, "%}");
    out->body = parse_block({"elif", "else", "endif"});
    expect(Kind::block_begin, "{%");
    if (takes("elif")) {
      out->otherwise.push_back(parse_if());
    } else if (takes("else")) {
      expect(Kind::block_end, "%}");
      out->otherwise = parse_block({"endif"});
      close("endif");
    } else {
      expect("endif");
      expect(Kind::block_end, "%}");
    }
    return out;
  }

  std::vector<std::string> parse_targets() {
    const bool bracket = takes("(");
    std::vector<std::string> names{expect_name()};
    while (takes(",")) {
      names.push_back(expect_name());
    }
    if (bracket) {
      expect(")");
    }
    return names;
  }

  std::unique_ptr<Statement> parse_for() {
    auto out = make(Statement::Kind::loop);
    out->names = parse_targets();
    expect("in");
    out->expr = parse_or();
    if (now().is(",")) {
      out->expr = parse_rest_of_list(std::move(out->expr));
    }
    if (takes("if")) {
      out->condition = parse_expression();
    }
    if (now().is("recursive")) {
      wrong("recursive loops are not known here");
    }
    expect(Kind::block_end, "%}");
    ++loops_;
    out->body = parse_block({"else", "endfor"});
    --loops_;
    expect(Kind::block_begin, "{%");
    if (takes("else")) {
      expect(Kind::block_end, "%}");
      out->otherwise = parse_block({"endfor"});
      close("endfor");
    } else {
      expect("endfor");
      expect(Kind::block_end, "%}");
    }
    return out;
  }

  std::unique_ptr<Statement> parse_set() {
    auto out = make(Statement::Kind::set);
    out->names = parse_targets();
    if (takes(".")) {
      out->names.back() += "." + expect_name();
    }
    if (takes("=")) {
      out->expr = parse_tuple();
      expect(Kind::block_end, "%}");
      return out;
    }
    out->kind = Statement::Kind::set_block;
    if (now().is("|")) {
      out->expr = parse_filters(nullptr);
    }
    expect(Kind::block_end, "%}");
    out->body = parse_block({"endset"});
    close("endset");
    return out;
  }

  std::unique_ptr<Statement> parse_macro() {
    auto out = make(Statement::Kind::macro);
    out->text = expect_name();
    expect("(");
    while (!takes(")")) {
      out->names.push_back(expect_name());
      if (takes("=")) {
        out->defaults.push_back(parse_expression());
      } else if (!out->defaults.empty()) {
        wrong("an argument without a default behind one that has one");
      }
      if (!now().is(")")) {
        expect(",");
      }
    }
    expect(Kind::block_end, "%}");
    const int loops = std::exchange(loops_, 0);
    out->body = parse_block({"endmacro"});
    loops_ = loops;
    close("endmacro");
    return out;
  }

  /// call, filter and generation.
  std::unique_ptr<Statement> parse_enclosed(Statement::Kind kind, std::string_view end) {
    auto out = make(kind);
    if (kind == Statement::Kind::call_block) {
      out->expr = parse_expression();
      if (out->expr->kind != Expr::Kind::call) {
        wrong("{% call %} wants a call of a macro");
      }
    } else if (kind == Statement::Kind::filter_block) {
      out->expr = parse_filter(nullptr);
      while (takes("|")) {
        out->expr = parse_filter(std::move(out->expr));
      }
    }
    expect(Kind::block_end, "%}");
    out->body = parse_block({end});
    close(end);
    return out;
  }

  int loops_ = 0;
  bool generation_ = false;
};

}  // namespace

Parsed parse(std::string_view source) { return Parser(source).run(); }

}  // namespace kf::jinja
