#include "config/toml.h"

#include <algorithm>
#include <exception>

#include "core/text.h"

namespace kf::config {

/// Text that the parser's own assumptions do not cover, such as `[&x]`: it asserts where it should report.
struct ParserGaveUp : std::exception {};

[[noreturn]] void give_up();
void give_up() { throw ParserGaveUp(); }

}  // namespace kf::config

// The assertions stay on in every build and become errors of ours; without them the parser would go on into undefined behaviour.
#undef NDEBUG
#define TOML_ASSERT(condition) ((condition) ? void() : kf::config::give_up())
#define TOML_EXCEPTIONS 1
#define TOML_ENABLE_FORMATTERS 0
#include <toml++/toml.h>

namespace kf::config {
namespace {

constexpr int kMaxDepth = 64;  // tables in tables; a job needs four

/// Walks the parser's tree, which knows positions only.
class Builder {
 public:
  Builder(std::string_view text, const std::string& file, Origin::Kind kind, Report& report)
      : lines_(split(text, '\n')), file_(file), kind_(kind), report_(report) {}

  Table table(const toml::table& in, int depth = 0) {
    std::vector<std::pair<const toml::key*, const toml::node*>> entries;
    for (const auto& [key, node] : in) {
      entries.emplace_back(&key, &node);
    }
    std::stable_sort(entries.begin(), entries.end(), [](const auto& a, const auto& b) {
      const toml::source_position x = a.first->source().begin;
      const toml::source_position y = b.first->source().begin;
      return x.line != y.line ? x.line < y.line : x.column < y.column;
    });
    Table out;
    for (const auto& [key, node] : entries) {
      Node value = this->node(*node, depth + 1);
      value.key_origin = origin(key->source());
      out[key->str()] = std::move(value);
    }
    return out;
  }

  Origin origin(const toml::source_region& region) const {
    Origin out{kind_, file_, static_cast<int>(region.begin.line), static_cast<int>(region.begin.column), ""};
    if (region.begin.line >= 1 && region.begin.line <= lines_.size()) {
      out.text = lines_[region.begin.line - 1];
    }
    return out;
  }

  void problem(const toml::source_region& region, std::string message) { report_.problems.push_back({origin(region), std::move(message)}); }

 private:
  Node node(const toml::node& in, int depth) {
    Node out;
    out.origin = origin(in.source());
    if (depth > kMaxDepth) {
      problem(in.source(), format("more than {} tables or lists inside each other", kMaxDepth));
      return out;
    }
    switch (in.type()) {
      case toml::node_type::table: out.value = table(*in.as_table(), depth); break;
      case toml::node_type::array: out.value = array(*in.as_array(), depth); break;
      case toml::node_type::string: out.value = in.as_string()->get(); break;
      case toml::node_type::integer: out.value = std::int64_t{in.as_integer()->get()}; break;
      case toml::node_type::floating_point: out.value = in.as_floating_point()->get(); break;
      case toml::node_type::boolean: out.value = in.as_boolean()->get(); break;
      default: problem(in.source(), "no setting is a date or a time; put it in quotes if it is text"); break;
    }
    return out;
  }

  Array array(const toml::array& in, int depth) {
    Array out;
    for (const toml::node& item : in) {
      out.push_back(node(item, depth + 1));
      out.back().key_origin = out.back().origin;
    }
    return out;
  }

  std::vector<std::string> lines_;
  std::string file_;
  Origin::Kind kind_;
  Report& report_;
};

/// The first line, from 1, at which the parser gives up: it does so for every text that reaches that line.
std::size_t line_of_surrender(const std::vector<std::string>& lines) {
  std::size_t fine = 0;
  std::size_t bad = lines.size();
  while (bad - fine > 1) {
    const std::size_t middle = fine + (bad - fine) / 2;
    try {
      (void)toml::parse(join({lines.begin(), lines.begin() + static_cast<std::ptrdiff_t>(middle)}, "\n"));
      fine = middle;
    } catch (const toml::parse_error&) {
      fine = middle;
    } catch (const ParserGaveUp&) {
      bad = middle;
    }
  }
  return bad;
}

}  // namespace

std::optional<Table> parse_toml(std::string_view text, const std::string& file, Origin::Kind kind, Report& report) {
  Builder builder(text, file, kind, report);
  try {
    const toml::table table = toml::parse(text);
    return builder.table(table);
  } catch (const toml::parse_error& error) {
    builder.problem(error.source(), format("not valid TOML: {}", std::string_view(error.description())));
  } catch (const ParserGaveUp&) {
    const auto line = static_cast<toml::source_index>(line_of_surrender(split(text, '\n')));
    builder.problem({{line, 1}, {line, 1}, nullptr}, "not valid TOML: a character here cannot start a key or a value");
  }
  return std::nullopt;
}

}  // namespace kf::config
